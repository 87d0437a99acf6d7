//! The cost of text for a model, in bytes and tokens.

use std::ops::AddAssign;

use tiktoken_rs::CoreBPE;

/// The cost of some texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The number of bytes in UTF-8.
    pub bytes: usize,
    /// The number of tokens in o200k_base.
    pub tokens: usize,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.bytes += other.bytes;
        self.tokens += other.tokens;
    }
}

/// The tokenizer.
pub struct Costs(CoreBPE);

impl Costs {
    /// Decompresses the vocabulary of the tokenizer, which is part of the binary; takes a moment.
    ///
    /// # Errors
    /// Returns an error if it cannot be decompressed.
    pub fn load() -> Result<Costs, String> {
        tiktoken_rs::o200k_base().map(Costs).map_err(|problem| problem.to_string())
    }

    /// Counts the cost of these texts.
    pub fn of(&self, texts: &[&str]) -> Cost {
        let mut all = Cost::default();
        for text in texts {
            all += Cost { bytes: text.len(), tokens: self.0.encode_ordinary(text).len() };
        }
        all
    }
}
