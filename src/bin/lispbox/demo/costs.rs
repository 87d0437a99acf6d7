//! What text costs a model: bytes and tokens.

use std::ops::AddAssign;

use tiktoken_rs::CoreBPE;

/// The price of some texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes of UTF-8.
    pub bytes: usize,
    /// Tokens of o200k_base.
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
    /// Unpacks the tokenizer's vocabulary, which is part of the binary; takes a moment.
    ///
    /// # Errors
    /// If it cannot be unpacked.
    pub fn load() -> Result<Costs, String> {
        tiktoken_rs::o200k_base().map(Costs).map_err(|problem| problem.to_string())
    }

    /// What these texts cost.
    pub fn of(&self, texts: &[&str]) -> Cost {
        let mut all = Cost::default();
        for text in texts {
            all += Cost { bytes: text.len(), tokens: self.0.encode_ordinary(text).len() };
        }
        all
    }
}
