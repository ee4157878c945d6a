//! Every bound of the edge in one place, with its unit in its name.

/// What the server allows a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Size of a request body; refused before it is parsed, and before it is read where the client says its length.
    pub body_bytes_max: usize,
    /// How long a client may take to send its body.
    pub body_read_s_max: u32,
    /// How long the rest of a body is read whose request was answered before its end.
    pub unread_body_s_max: u32,
    /// How long a client may take to say which HTTP it speaks, and then to send its headers.
    pub head_read_s_max: u32,
    /// How long a client may take for its TLS handshake.
    pub tls_handshake_s_max: u32,
    /// How often the files of the certificate are looked at, so that new ones are used without a restart.
    pub tls_files_look_s: u32,
    /// How often the file of tokens is looked at, so that a new list is used without a restart.
    pub tokens_file_look_s: u32,
    /// How long an [`Authenticator`](crate::Authenticator) may take to say who calls.
    pub authenticate_s_max: u32,
    /// Connections at once, those that are shaking hands included; more wait to be accepted.
    pub connections_max: usize,
    /// Requests at once on one HTTP/2 connection.
    pub h2_streams_max: u32,
    /// Parts of one message.
    pub parts_max: usize,
    /// How long a stream is silent before it says that it is still there.
    pub keep_alive_s: u32,
    /// Updates of a stream that are written together when they are there together.
    pub stream_write_bytes: usize,
    /// How long a resumed gRPC stream waits for its first update before its answer begins: the head has that update's number.
    pub first_update_wait_ms: u32,
    /// Bytes of a download that are read at once, and held until the client has taken them.
    pub download_read_bytes: usize,
    /// How long clients may keep a card.
    pub card_max_age_s: u32,
    /// How long a client may take for the next 16 KiB of an answer before its connection is ended.
    pub reply_stall_s_max: u32,
    /// Bytes of bodies that are being received, of all callers together; small ones are not counted.
    pub body_bytes_held_max: u64,
    /// The same for each caller.
    pub body_bytes_held_per_caller_max: u64,
    /// Bytes of answers that clients have not taken yet, of all callers together; small ones are not counted.
    pub reply_bytes_held_max: u64,
    /// The same for each caller.
    pub reply_bytes_held_per_caller_max: u64,
    /// Streams that are open at once.
    pub streams_max: u32,
    /// The same for each caller.
    pub streams_per_caller_max: u32,
    /// Requests per second of each caller; five seconds' worth may come at once. None means no limit.
    pub caller_requests_per_second_max: Option<u32>,
    /// The same for each address, whoever calls from there, counted before it is known who calls.
    pub address_requests_per_second_max: Option<u32>,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes_max: 10 << 20,
            body_read_s_max: 60,
            unread_body_s_max: 10,
            head_read_s_max: 30,
            tls_handshake_s_max: 10,
            tls_files_look_s: 60,
            tokens_file_look_s: 60,
            authenticate_s_max: 10,
            connections_max: 20_000,
            h2_streams_max: 256,
            parts_max: 1_000,
            keep_alive_s: 15,
            stream_write_bytes: 64 << 10,
            first_update_wait_ms: 1_000,
            download_read_bytes: 256 << 10,
            card_max_age_s: 300,
            reply_stall_s_max: 30,
            body_bytes_held_max: 64 << 20,
            body_bytes_held_per_caller_max: 32 << 20,
            reply_bytes_held_max: 128 << 20,
            reply_bytes_held_per_caller_max: 64 << 20,
            streams_max: 20_000,
            streams_per_caller_max: 10_000,
            caller_requests_per_second_max: None,
            address_requests_per_second_max: None,
        }
    }
}
