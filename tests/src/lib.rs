//! Holds nothing: the tests are in `it/`.
