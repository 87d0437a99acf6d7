// Reads lines of JSON, `["url", TEXT]` or `["addresses", TEXT]`, and answers each with what Node's parsers, nodemailer and
// a strict RFC 5322 parser find; see parsers.py. The argument is the folder with the packages.
const path = require("node:path");
const url = require("node:url");
const { createRequire } = require("node:module");

process.removeAllListeners("warning");
process.on("warning", () => {});
const from = createRequire(path.join(process.argv[2], "package.json"));
const nodemailer = from("nodemailer/lib/addressparser");
const addressparser = nodemailer.default ?? nodemailer;
const rfc5322 = from("email-addresses");

const urlParsers = {
  "Node's URL": (text) => new URL(text).hostname || null,
  "url.parse": (text) => url.parse(text).hostname,
  "url.parse (slashes)": (text) => url.parse(text, false, true).hostname,
};
const flat = (found) => found.flatMap((item) => (item.group ? flat(item.group) : [item.address ?? ""]));
const strict = (text) => {
  const found = rfc5322.parseAddressList({ input: text, strict: true, rejectTLD: false });
  if (!found) return null;
  return found.flatMap((item) => (item.type === "group" ? item.addresses : [item])).map((item) => item.address);
};
const addressParsers = { nodemailer: (text) => flat(addressparser(text)), "email-addresses": strict };

const tried = (parser, text) => {
  try {
    return parser(text) ?? null;
  } catch {
    return null; // Whatever it throws, it sends nothing.
  }
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const [kind, text] = JSON.parse(line);
  const parsers = Object.entries(kind === "url" ? urlParsers : addressParsers);
  console.log(JSON.stringify(Object.fromEntries(parsers.map(([name, parser]) => [name, tried(parser, text)]))));
});
