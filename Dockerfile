# syntax=docker/dockerfile:1
# Chorus as an image: one static program, and what agents use. The guide is docs/guides/docker.md.

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
# grpcnotrace: see GOFLAGS in the Makefile.
RUN CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/chorus ./cmd/chorus

FROM debian:bookworm-slim
# The program needs none of these. Agents do: git and rg as tools, bwrap for walls where
# the container may put them up, certificates for the models' servers.
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates git ripgrep \
 && rm -rf /var/lib/apt/lists/*
# A volume takes owner and mode of the folder it is first mounted over.
RUN useradd --uid 10001 --user-group --create-home --shell /bin/bash chorus \
 && install -d -o chorus -g chorus -m 0700 /data \
 && install -d -o chorus -g chorus -m 0755 /work
COPY --from=build /out/chorus /usr/local/bin/chorus
USER 10001:10001
ENV CHORUS_HOME=/data CHORUS_ADDR=0.0.0.0:8420 CHORUS_LOG_FORMAT=json
VOLUME /data
WORKDIR /work
EXPOSE 8420
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 CMD ["chorus", "serve", "--check"]
ENTRYPOINT ["chorus"]
# Outside of this machine only through a proxy that does TLS; see the guide before publishing the port.
CMD ["serve", "--behind-proxy"]
