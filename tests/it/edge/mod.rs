//! HTTP requests through the server's service, no socket: paths and verbs, the bindings, versions, the accents of single
//! systems, streams, cards, who may call, and every kind of bad input. gRPC is called over a socket, because half of it is
//! how HTTP/2 carries it, and so is everything about TLS.

mod accept;
mod agent_native;
mod auth;
mod bad_bodies;
mod bad_fields;
mod cards;
mod corvid;
mod dawdlers;
mod downloads;
mod error_page;
mod errors;
mod every_card;
mod extended_cards;
mod fanout;
mod gate;
mod grpc_bodies;
mod grpc_calls;
mod grpc_refusals;
mod grpc_streams;
mod headers;
mod hostile;
mod http_json;
mod jsonrpc;
mod mixed;
mod mounted;
mod nexus;
mod one_conversation;
mod ops;
mod outbox;
mod own_words;
mod paths;
mod reading_across;
mod routes;
mod selectools;
mod sse;
mod sse_resume;
mod tls;
mod tls_refusals;
mod v0_2_page;
mod v0_2_workflows;
mod v0_3_grpc;
mod v0_3_http_json;
mod v0_3_jsonrpc;
mod versions;
