//! `HOST:PORT` arguments of the command line, where the host is a name or an IP address.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use crate::context::Problem;

/// An address to listen on, before the name is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let expected = || format!("expected an address as `HOST:PORT`, such as `127.0.0.1:8787`, got `{text}`");
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Address { host: address.ip().to_string(), port: address.port() });
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || "/:[]@".contains(c)) {
            return Err(expected());
        }
        let port = port.parse().map_err(|_| format!("{}: the port is a number up to 65535", expected()))?;
        Ok(Address { host: host.to_owned(), port })
    }
}

impl Address {
    /// Resolves the address to socket addresses, IPv4 first, so that clients that look up `localhost` can use either.
    ///
    /// # Errors
    /// Returns an error if the name cannot be resolved.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, Problem> {
        let failed =
            |reason: String| Problem::Usage(format!("the address `{}` cannot be resolved: {reason}", self.host));
        let found = (self.host.as_str(), self.port).to_socket_addrs().map_err(|problem| failed(problem.to_string()))?;
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in found {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses.sort_by_key(SocketAddr::is_ipv6);
        if addresses.is_empty() { Err(failed("it has no address".to_owned())) } else { Ok(addresses) }
    }

    /// The host, if it is a name.
    pub fn name(&self) -> Option<&str> {
        self.host.parse::<std::net::IpAddr>().is_err().then_some(self.host.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_addresses() {
        let resolved = |text: &str| text.parse::<Address>().expect("an address").resolve().ok().expect("it resolves");
        assert_eq!(resolved("127.0.0.1:80"), ["127.0.0.1:80".parse().expect("an address")]);
        assert_eq!(resolved("[::1]:80"), ["[::1]:80".parse().expect("an address")]);
        let local = resolved("localhost:8787");
        assert!(!local.is_empty() && local.iter().all(|address| address.ip().is_loopback()), "{local:?}");
        for wrong in [
            "",
            "8787",
            ":8787",
            "localhost",
            "localhost:",
            "localhost:99999",
            "http://localhost:80",
            "::1:80",
            "a b:1",
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
