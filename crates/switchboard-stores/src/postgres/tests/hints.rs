//! Hints over LISTEN and NOTIFY.

use std::sync::Arc;

use switchboard_engine::contract::hints::HintSubject;
use switchboard_engine::ports::Hints;

use super::OnSchema;

impl HintSubject for OnSchema {
    fn first(&self) -> Arc<dyn Hints> {
        self.first.as_ref().unwrap().hints()
    }

    fn second(&self) -> Arc<dyn Hints> {
        self.second.as_ref().unwrap().hints()
    }

    fn cut(&self) {
        self.sql(&format!(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid() and query like '%LISTEN \"{}_h%'",
            self.options.schema
        ));
    }
}

fn make() -> OnSchema {
    OnSchema::shared()
}

switchboard_engine::hints_contract!(
    #[ignore = "starts PostgreSQL"]
    make
);
