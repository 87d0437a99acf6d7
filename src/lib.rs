//! lispbox
pub mod lang;
