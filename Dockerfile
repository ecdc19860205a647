# The API in a small image. Without access to an image registry, both base images can be replaced:
# see scripts/local-base-images.
ARG RUST_IMAGE=rust:1.95-bookworm
ARG RUNTIME_IMAGE=debian:bookworm-slim

FROM ${RUST_IMAGE} AS build
WORKDIR /src

# Builds the dependencies with empty sources. Only a change of a Cargo.toml or of Cargo.lock makes this layer out of date.
COPY Cargo.toml Cargo.lock ./
COPY api/model/Cargo.toml api/model/
COPY api/embedded/Cargo.toml api/embedded/
COPY api/engine/Cargo.toml api/engine/
COPY api/page_views/Cargo.toml api/page_views/
COPY api/streams/Cargo.toml api/streams/
COPY api/http/Cargo.toml api/http/
COPY api/server/Cargo.toml api/server/
RUN mkdir api/cli \
 && touch api/model/lib.rs api/embedded/lib.rs api/engine/lib.rs api/page_views/lib.rs api/streams/lib.rs api/http/lib.rs \
    api/server/lib.rs api/cli/lib.rs \
 && echo 'fn main() {}' > api/cli/main.rs \
 && cargo build --release --locked --bin pagebucket \
 && rm -r api

# cargo compares times, and the real sources may be older than the build from the empty ones.
COPY api api
COPY migrations migrations
COPY openapi openapi
COPY web web
RUN touch api/*/*.rs \
 && cargo build --release --locked --bin pagebucket

# The binary needs only the C library: TLS is rustls, with its own root certificates.
FROM ${RUNTIME_IMAGE}
COPY --from=build /src/target/release/pagebucket /usr/local/bin/pagebucket
USER 65532:65532
ENV PAGEBUCKET_LISTEN=0.0.0.0:8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["pagebucket", "healthcheck"]
ENTRYPOINT ["pagebucket"]
CMD ["serve"]
