"""Reads lines of JSON, `["url", TEXT]` or `["addresses", TEXT]`, and answers each with what Python's and curl's parsers find.

For a URL: by parser, the host that it would connect to, or null if it refuses the text. For addresses: by parser, a list.
"""
import ctypes
import ctypes.util
import email.headerregistry
import email.policy
import email.utils
import http.client
import json
import sys
import urllib.parse
import urllib.request

curl = ctypes.CDLL(ctypes.util.find_library("curl") or ctypes.util.find_library("curl-gnutls") or "libcurl.so.4")
curl.curl_url.restype = ctypes.c_void_p
curl.curl_url_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
curl.curl_url_get.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint]
curl.curl_url_cleanup.argtypes = [ctypes.c_void_p]
curl.curl_free.argtypes = [ctypes.c_void_p]
# Of `CURLUPart` and of the flags of curl/urlapi.h. The command line sets the latter for the texts that it is given.
URL, HOST, GUESS_SCHEME, NON_SUPPORT_SCHEME = 0, 5, 1 << 9, 1 << 3


def curl_host(text):
    if "\0" in text:
        return None
    handle = curl.curl_url()
    try:
        flags = GUESS_SCHEME | NON_SUPPORT_SCHEME
        if curl.curl_url_set(handle, URL, text.encode("utf-8", "surrogatepass"), flags) != 0:
            return None
        found = ctypes.c_void_p()
        if curl.curl_url_get(handle, HOST, ctypes.byref(found), 0) != 0:
            return None
        host = ctypes.string_at(found).decode("utf-8", "replace")
        curl.curl_free(found)
        return host
    finally:
        curl.curl_url_cleanup(handle)


def http_client_host(text):
    host = urllib.request.Request(text).host
    return http.client.HTTPConnection(host).host if host else None


URL_PARSERS = {
    "urllib.parse": lambda text: urllib.parse.urlsplit(text).hostname,
    "http.client": http_client_host,
    "curl": curl_host,
}


def header(text):
    parsed = email.policy.default.header_factory("To", text)
    return [address.addr_spec for address in parsed.addresses]


ADDRESS_PARSERS = {
    "getaddresses": lambda text: [address for _, address in email.utils.getaddresses([text])],
    "parseaddr": lambda text: [email.utils.parseaddr(text)[1]],
    "email.headerregistry": header,
}
if "strict" in (email.utils.getaddresses.__kwdefaults__ or {}):
    ADDRESS_PARSERS["getaddresses (not strict)"] = lambda text: [
        address for _, address in email.utils.getaddresses([text], strict=False)
    ]


def tried(parser, text):
    try:
        return parser(text)
    except Exception:  # Whatever it raises, it sends nothing.
        return None


for line in sys.stdin:
    kind, text = json.loads(line)
    parsers = URL_PARSERS if kind == "url" else ADDRESS_PARSERS
    print(json.dumps({name: tried(parser, text) for name, parser in parsers.items()}), flush=True)
