//! Random programs over maps, sets, sorted collections, records and sequences, checked against a simple model. The fuzz
//! target `collections` runs the same programs for an unlimited time.

use crate::common;

use common::collections::{Choices, case};
use proptest::prelude::*;

/// Choices derived from bytes.
struct Bytes(std::vec::IntoIter<u8>);

impl Choices for Bytes {
    fn pick(&mut self, count: usize) -> usize {
        usize::from(self.0.next().unwrap_or(0)) % count
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 2_000, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn collections_answer_as_a_plain_model_does(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let case = case(&mut Bytes(bytes.into_iter()));
        let (got, message) = common::answer(&case.program);
        prop_assert_eq!(&got, &case.expected, "{}\n{}", case.program, message);
    }
}
