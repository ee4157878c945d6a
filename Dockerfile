# Switchboard in a small image: the binary, a user without rights, a health check.
#
#     docker build --tag switchboard .
#     docker run --publish 8080:8080 --volume switchboard:/data \
#         --env SWITCHBOARD_TOKENS='q6V0mDk2H1rT9yXw4bZc alice' switchboard
#
# Other machines can reach the port of a container, so the server starts only with tokens, or with
# SWITCHBOARD_ALLOW_UNAUTHENTICATED=true. It reads /data/switchboard.toml if there is one, and keeps its tasks in
# /data/switchboard-data. The image has no shell: agents that run other commands need an image with those commands in it.
# crates/switchboard-cli/tests/install.rs runs the lines of this file.

FROM rust:1.90-slim-bookworm AS build
WORKDIR /build
COPY . .
RUN cargo build --release --locked --package switchboard-cli
RUN mkdir -p /out/data && cp target/release/switchboard /out/switchboard

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /out/switchboard /usr/local/bin/switchboard
COPY --from=build --chown=nonroot:nonroot /out/data /data
WORKDIR /data
VOLUME /data
ENV BIND_HOST=0.0.0.0 PORT=8080
EXPOSE 8080
USER nonroot
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=6s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/switchboard", "health"]
ENTRYPOINT ["/usr/local/bin/switchboard"]
CMD ["serve"]
