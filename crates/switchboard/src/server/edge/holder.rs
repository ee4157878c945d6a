//! Who has to answer for what a request takes.

use std::net::IpAddr;

use switchboard_core::model::Principal;

/// Who holds something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    Principal(Principal),
    Address(IpAddr),
    /// Without a credential, in an application that does not say where requests come from.
    Unknown,
}

impl Holder {
    /// One customer of a provider has a whole /64 of IPv6.
    pub(crate) fn of_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::Address(address.into()),
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                Self::Address(IpAddr::V6(network.into()))
            }
        }
    }
}
