//! Splits large sessions into pieces, so that a small change is a small write.
//!
//! A text is cut at boundaries that depend on its content, not at fixed offsets: an insertion or deletion leaves the
//! pieces before and after it unchanged. Each piece is stored under its digest, once per session, beside the ordered
//! list of digests. A writer therefore sends the pieces that the previous list did not have, and the new list. A short
//! text is stored whole and has no list.

use super::Problem;
use fastcdc::v2020::FastCDC;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};

/// Maximum length of a text that is stored whole, in bytes.
const WHOLE: usize = 64 << 10;

/// Length of a piece in bytes: minimum, average, maximum.
const PIECE: (usize, usize, usize) = (8 << 10, 32 << 10, 128 << 10);

/// The key of a piece: the first half of its SHA-256.
pub(super) type Digest = [u8; 16];

/// A text split into pieces.
pub(super) struct Pieces<'t> {
    /// The length of the text in eight little-endian bytes, then the digests of its pieces.
    pub(super) list: Vec<u8>,
    pieces: HashMap<Digest, &'t [u8]>,
}

impl<'t> Pieces<'t> {
    /// Splits a text if it is longer than [`WHOLE`].
    pub(super) fn of(text: &'t str) -> Option<Pieces<'t>> {
        if text.len() <= WHOLE {
            return None;
        }
        let (least, about, most) = PIECE;
        let mut list = (text.len() as u64).to_le_bytes().to_vec();
        let mut pieces = HashMap::new();
        for cut in FastCDC::new(text.as_bytes(), least, about, most) {
            let piece = &text.as_bytes()[cut.offset..cut.offset + cut.length];
            let digest = digest(piece);
            list.extend(digest);
            pieces.insert(digest, piece);
        }
        Some(Pieces { list, pieces })
    }

    /// Iterates over the pieces whose digests are not in `there`.
    pub(super) fn added(&self, there: &HashSet<Digest>) -> impl Iterator<Item = (&Digest, &'t [u8])> {
        self.pieces.iter().filter(|(digest, _)| !there.contains(*digest)).map(|(digest, piece)| (digest, *piece))
    }
}

/// Iterates over the digests in a list, in order.
pub(super) fn digests(list: &[u8]) -> impl Iterator<Item = Digest> {
    list.get(8..).unwrap_or_default().as_chunks().0.iter().copied()
}

/// The length in bytes of the text that a list describes.
pub(super) fn length(list: &[u8]) -> u64 {
    list.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Reassembles a text.
///
/// # Errors
/// Returns [`Problem::Damaged`] if a piece is missing or does not match its digest.
pub(super) fn joined<P: AsRef<[u8]>>(list: &[u8], pieces: &HashMap<Digest, P>) -> Result<String, Problem> {
    let damaged = |what: &str| Problem::Damaged(format!("a part of its stored text {what}"));
    let checked: HashMap<Digest, &[u8]> = pieces.iter().map(|(name, piece)| (*name, piece.as_ref())).collect();
    if checked.iter().any(|(name, piece)| digest(piece) != *name) {
        return Err(damaged("is corrupted"));
    }
    let mut text = Vec::new();
    for name in digests(list) {
        text.extend_from_slice(checked.get(&name).ok_or_else(|| damaged("is missing"))?);
    }
    if text.len() as u64 != length(list) {
        return Err(damaged("is missing"));
    }
    String::from_utf8(text).map_err(|_| damaged("is not text"))
}

fn digest(piece: &[u8]) -> Digest {
    let mut half = Digest::default();
    half.copy_from_slice(&Sha256::digest(piece)[..16]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: std::ops::Range<u32>) -> String {
        lines.map(|line| format!("(object {line} \"{}\")\n", line.wrapping_mul(2_654_435_761))).collect()
    }

    #[test]
    fn a_short_text_is_kept_whole() {
        assert!(Pieces::of("(history nil)").is_none());
    }

    #[test]
    fn a_small_change_adds_few_pieces_wherever_it_is() {
        let before = text(0..200_000);
        let list = Pieces::of(&before).expect("it is long").list;
        assert!(list.len() > 16 * 50, "{}", list.len());
        assert_eq!(length(&list), before.len() as u64);
        for at in [0, before.len() / 3, before.len()] {
            let mut after = before.clone();
            after.insert_str(at, "(define small 1)\n");
            let pieces = Pieces::of(&after).expect("it is long");
            let added: usize = pieces.added(&digests(&list).collect()).map(|(_, piece)| piece.len()).sum();
            assert!(added < 512 << 10, "{added} bytes for a change at {at}");
            assert_eq!(joined(&pieces.list, &pieces.pieces), Ok(after));
        }
    }

    #[test]
    fn a_piece_that_is_another_or_missing_is_noticed() {
        let text = text(0..20_000);
        let Pieces { list, pieces } = Pieces::of(&text).expect("it is long");
        let first = digests(&list).next().expect("there are some");
        let mut other: HashMap<Digest, Vec<u8>> = pieces.iter().map(|(name, piece)| (*name, piece.to_vec())).collect();
        other.get_mut(&first).expect("it is there")[20] ^= 1;
        assert!(matches!(joined(&list, &other), Err(Problem::Damaged(_))));
        other.remove(&first);
        assert!(matches!(joined(&list, &other), Err(Problem::Damaged(_))));
        assert!(matches!(joined(&list[..list.len() - 16], &pieces), Err(Problem::Damaged(_))));
    }
}
