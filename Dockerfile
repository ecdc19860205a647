# The program and the C library that it needs, for amd64 and arm64: no shell, no packages. The program is compiled on the machine that
# builds, also for the other processor:
#   docker buildx build --platform linux/amd64,linux/arm64 -t pagebucket .
# Without BuildKit the image is for this machine. Without access to an image registry, the base image can be replaced: see
# scripts/local-base-images.
ARG RUST_IMAGE=rust:1.95-bookworm

FROM --platform=${BUILDPLATFORM:-linux} ${RUST_IMAGE} AS build
WORKDIR /src
SHELL ["/bin/bash", "-e", "-o", "pipefail", "-c"]
ENV CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc

# Cargo is told the processor of the image. For another one than this machine's, Debian's cross compiler is installed, in the
# version that Debian has then: an earlier one can no longer be had.
ARG TARGETARCH
# hadolint ignore=DL3008
RUN case "${TARGETARCH:-$(uname -m)}" in \
      amd64|x86_64) processor=x86_64 debian=amd64 package=gcc-x86-64-linux-gnu ;; \
      arm64|aarch64) processor=aarch64 debian=arm64 package=gcc-aarch64-linux-gnu ;; \
      *) echo "there is no image for $TARGETARCH" >&2; exit 1 ;; \
    esac; \
    if ! command -v "$processor-linux-gnu-gcc"; then \
      apt-get update; \
      apt-get install -y --no-install-recommends "$package" "libc6-dev-$debian-cross"; \
      rm -rf /var/lib/apt/lists/*; \
    fi; \
    ln -s "$(command -v "$processor-linux-gnu-gcc")" /usr/local/bin/image-gcc; \
    target=$processor-unknown-linux-gnu; \
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup target add "$target"; \
    mkdir -p "$CARGO_HOME"; \
    printf '[build]\ntarget = "%s"\n' "$target" > "$CARGO_HOME/config.toml"

# Builds the dependencies with empty sources. Only a change of a Cargo.toml or of Cargo.lock makes this layer out of date.
COPY Cargo.toml Cargo.lock ./
COPY api/model/Cargo.toml api/model/
COPY api/embedded/Cargo.toml api/embedded/
COPY api/engine/Cargo.toml api/engine/
COPY api/page_views/Cargo.toml api/page_views/
COPY api/streams/Cargo.toml api/streams/
COPY api/http/Cargo.toml api/http/
COPY api/server/Cargo.toml api/server/
COPY api/service/Cargo.toml api/service/
COPY api/engine/tests/Cargo.toml api/engine/tests/
COPY api/service/tests/Cargo.toml api/service/tests/
RUN mkdir api/cli \
 && touch api/model/lib.rs api/embedded/lib.rs api/engine/lib.rs api/page_views/lib.rs api/streams/lib.rs api/http/lib.rs \
    api/server/lib.rs api/service/lib.rs api/cli/lib.rs \
 && echo 'fn main() {}' > api/cli/main.rs \
 && cargo build --release --locked --package pagebucket --bin pagebucket \
 && rm -r api

# cargo compares times, and the real sources may be older than the build from the empty ones.
COPY api api
COPY migrations migrations
COPY openapi openapi
COPY web web
RUN touch api/*/*.rs \
 && cargo build --release --locked --package pagebucket --bin pagebucket \
 && cp target/*-linux-gnu/release/pagebucket /pagebucket

# The image's files. TLS is rustls, with its own root certificates: the program needs the C library alone, where it looks for it.
RUN program=/image/usr/local/bin/pagebucket; \
    install -D /pagebucket "$program"; \
    loader=$(readelf --program-headers "$program" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p'); \
    install -D "$(image-gcc -print-file-name="${loader##*/}")" "/image$loader"; \
    for library in $(readelf --dynamic "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do \
      install -D --target-directory=/image/lib "$(image-gcc -print-file-name="$library")"; \
    done; \
    mkdir /image/etc; \
    echo 'pagebucket:x:65532:65532::/:/usr/sbin/nologin' > /image/etc/passwd; \
    echo 'hosts: files dns' > /image/etc/nsswitch.conf

FROM scratch
COPY --from=build /image /
LABEL org.opencontainers.image.title="pagebucket" \
      org.opencontainers.image.description="Append-only histories in MongoDB buckets, served as pages: a page is a bucket" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
USER 65532:65532
ENV PATH=/usr/local/bin \
    PAGEBUCKET_LISTEN=0.0.0.0:8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["pagebucket", "healthcheck"]
ENTRYPOINT ["pagebucket"]
CMD ["serve"]
