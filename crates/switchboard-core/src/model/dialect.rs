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
    /// What agent-native apps speak among themselves.
    AgentNative,
    /// What agents of the selectools library speak.
    Selectools,
    /// What corvid-agents speak among themselves, over plain HTTP.
    Corvid,
    /// What the NEXUS gateway speaks with its agents.
    Nexus,
}

impl Dialect {
    /// Every form, each at its [index](Self::index).
    pub const ALL: [Self; Self::COUNT] =
        [Self::V1_0, Self::V0_3, Self::V0_3Rest, Self::AgentNative, Self::Selectools, Self::Corvid, Self::Nexus];
    /// How many forms there are.
    pub const COUNT: usize = 7;

    /// The compat dialects: what single older systems speak. Each has a mount of its own under `/dialects/{name}` and a card
    /// of its own.
    pub const COMPAT: [Self; 4] = [Self::AgentNative, Self::Selectools, Self::Corvid, Self::Nexus];

    /// The compat dialects that travel over JSON-RPC, and so may claim the endpoint of an agent. Corvid has paths that
    /// no other dialect has, and needs no claim.
    pub const COMPAT_RPC: [Self; 3] = [Self::AgentNative, Self::Selectools, Self::Nexus];

    /// The protocol versions that are served, newest first.
    pub const VERSIONS: [&str; 2] = ["1.0", "0.3"];

    /// Whether it is one of [`Dialect::COMPAT_RPC`].
    #[must_use]
    pub fn is_compat_rpc(self) -> bool {
        Self::COMPAT_RPC.contains(&self)
    }

    /// The place of the form in [`Dialect::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::V1_0 => 0,
            Self::V0_3 => 1,
            Self::V0_3Rest => 2,
            Self::AgentNative => 3,
            Self::Selectools => 4,
            Self::Corvid => 5,
            Self::Nexus => 6,
        }
    }

    /// The name kept with stored things (a task and a push config remember the dialect they were begun in), and the name
    /// in settings and paths.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V0_3 => "0.3",
            Self::V0_3Rest => "0.3-rest",
            Self::AgentNative => "agent-native",
            Self::Selectools => "selectools",
            Self::Corvid => "corvid",
            Self::Nexus => "nexus",
        }
    }

    /// The form of this [name](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The compat dialect of this name.
    #[must_use]
    pub fn compat(name: &str) -> Option<Self> {
        Self::COMPAT.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The version of the protocol it spells, or is nearest to.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V0_3 | Self::V0_3Rest | Self::AgentNative => "0.3",
            Self::Selectools | Self::Corvid | Self::Nexus => "0.2",
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
    /// How many packages there are.
    pub const COUNT: usize = 2;

    /// The place of the package among all of them, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::V1_0 => 0,
            Self::V0_3 => 1,
        }
    }
}
