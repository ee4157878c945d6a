//! What the tests of the whole share: a world to put agents in, agents that a test plays by hand, callers, pictures of
//! what came back, and the edge without a socket.

pub(crate) mod bodies;
pub(crate) mod callers;
pub(crate) mod collector;
pub(crate) mod edge;
pub(crate) mod flaky_proxy;
pub(crate) mod gated_store;
pub(crate) mod grpc;
pub(crate) mod hooks;
pub(crate) mod issuers;
pub(crate) mod limit;
pub(crate) mod pictures;
pub(crate) mod proxy;
pub(crate) mod puppets;
pub(crate) mod scripted;
pub(crate) mod shapes;
pub(crate) mod tls;
pub(crate) mod world;

/// Makes two tests of each scenario: one over the memory store under paused time, one over a SQLite file. Time cannot
/// be paused for the second: it would jump whenever all tasks wait for the file. Its clock stands still instead.
macro_rules! on_both_stores {
    ($($scenario:ident),+ $(,)?) => {
        mod memory {
            $(
                #[tokio::test(start_paused = true)]
                async fn $scenario() {
                    super::$scenario(crate::support::world::Stock::memory()).await;
                }
            )+
        }

        mod sqlite {
            $(
                #[tokio::test]
                async fn $scenario() {
                    super::$scenario(crate::support::world::Stock::sqlite()).await;
                }
            )+
        }
    };
}

pub(crate) use on_both_stores;
