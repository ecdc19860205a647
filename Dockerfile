# The API in a small image. Both base images can be replaced, where no image registry is reached:
# see scripts/local-base-images.
ARG RUST_IMAGE=rust:1.95-bookworm
ARG RUNTIME_IMAGE=debian:bookworm-slim

FROM ${RUST_IMAGE} AS build
WORKDIR /src

# The dependencies, alone with empty sources: a layer that only Cargo.toml and Cargo.lock can outdate.
COPY Cargo.toml Cargo.lock ./
RUN mkdir api \
 && touch api/lib.rs \
 && echo 'fn main() {}' > api/main.rs \
 && cargo build --release --locked --bin pagebucket \
 && rm -r api

# The sources may be older than what was just built from the empty ones, and cargo goes by time.
COPY api api
COPY migrations migrations
COPY openapi openapi
COPY web web
RUN touch api/lib.rs api/main.rs \
 && cargo build --release --locked --bin pagebucket

# The binary needs the C library alone: TLS is rustls, with root certificates of its own.
FROM ${RUNTIME_IMAGE}
COPY --from=build /src/target/release/pagebucket /usr/local/bin/pagebucket
USER 65532:65532
ENV PAGEBUCKET_LISTEN=0.0.0.0:8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["pagebucket", "healthcheck"]
ENTRYPOINT ["pagebucket"]
CMD ["serve"]
