//! Which wire form is spoken. Only the name is here; the forms themselves are in `dialect/`.

/// The wire forms this build knows. A form is one spelling: where a version of the protocol is spelled differently in its
/// bindings, each spelling is a form, because an encoded update can be shared only by those who read the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A2A 1.0 in JSON, the same over JSON-RPC and HTTP+JSON.
    V1_0,
    /// A2A 0.3 as its JSON schema has it: JSON-RPC and webhooks. A2A 0.2 is the same family.
    V0_3,
    /// A2A 0.3 as protobuf's JSON mapping of its proto has it: HTTP+JSON under `/v1`.
    V0_3Rest,
}

impl Dialect {
    pub const ALL: [Self; Self::COUNT] = [Self::V1_0, Self::V0_3, Self::V0_3Rest];
    pub const COUNT: usize = 3;

    /// The protocol versions that are served, newest first.
    pub const VERSIONS: [&str; 2] = ["1.0", "0.3"];

    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::V1_0 => 0,
            Self::V0_3 => 1,
            Self::V0_3Rest => 2,
        }
    }

    /// The name kept with stored things (a push config remembers the dialect it was registered in).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V0_3 => "0.3",
            Self::V0_3Rest => "0.3-rest",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The version of the protocol it spells.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V0_3 | Self::V0_3Rest => "0.3",
        }
    }

    /// The form a version has where its bindings differ: the one of JSON-RPC.
    #[must_use]
    pub fn of_version(version: &str) -> Option<Self> {
        [Self::V1_0, Self::V0_3].into_iter().find(|dialect| dialect.version() == version)
    }
}

/// The protobuf packages this build knows: what gRPC carries is spelled by one of them, and each is a form of its own beside
/// those of [`Dialect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Package {
    /// `lf.a2a.v1`.
    V1_0,
    /// `a2a.v1`.
    V0_3,
}

impl Package {
    pub const COUNT: usize = 2;

    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::V1_0 => 0,
            Self::V0_3 => 1,
        }
    }
}
