//! How much a server keeps in memory.

use switchboard_engine::limits::Limits;

use crate::{Server, ServerBuilder};

#[test]
fn tasks_in_memory_have_a_limit_for_memory_unless_one_is_set() {
    let store = Server::builder().memory().store;
    let adapted = |bytes: u64| store.adapt(Limits { storage_bytes_max: bytes, ..Limits::default() }).storage_bytes_max;
    assert_eq!(adapted(Limits::default().storage_bytes_max), ServerBuilder::MEMORY_STORAGE_BYTES_MAX_DEFAULT);
    assert_eq!(adapted(2 << 30), 2 << 30);
    #[cfg(feature = "sqlite")]
    {
        use crate::server::host::StoreChoice;
        let on_disk = StoreChoice::Sqlite("tasks.db".into(), Default::default()).adapt(Limits::default());
        assert_eq!(on_disk.storage_bytes_max, Limits::default().storage_bytes_max);
    }
}
