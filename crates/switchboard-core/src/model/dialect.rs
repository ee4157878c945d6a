//! Which wire form is spoken. Only the name is here; the forms themselves are in `dialect/`.

/// The wire forms this build knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    V1_0,
}

impl Dialect {
    pub const COUNT: usize = 1;

    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::V1_0 => 0,
        }
    }

    /// The name kept with stored things (a push config remembers the dialect it was registered in).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        (name == "1.0").then_some(Self::V1_0)
    }
}
