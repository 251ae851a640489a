# The image of the scheduler: one static file, certificate authorities, nothing else. `make image` builds it with
# docker, podman or buildah. Each command of the project that runs in a cluster is a target of its own.

# Another image of Go 1.26 with make and git does as well, for example one from your own registry.
ARG GO_IMAGE=golang:1.26-bookworm

# Compiles on the machine's own platform for that of the image, so nothing is emulated.
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS=linux
ARG TARGETARCH=amd64
# The version is our own, without that of Kubernetes. Commit, state and date are stamped into the binary.
ARG VERSION
ARG COMMIT=unknown
ARG TREE_STATE=clean
ARG BUILD_DATE=1970-01-01T00:00:00Z
RUN make scheduler GIT_COMMIT=${COMMIT} GIT_TREE_STATE=${TREE_STATE} BUILD_DATE=${BUILD_DATE} \
      ${VERSION:+VERSION=${VERSION}} GOOS=${TARGETOS} GOARCH=${TARGETARCH}

# What all images share. Time zones are compiled into the commands.
FROM scratch AS base
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# A number, so that a kubelet can check runAsNonRoot.
USER 65532:65532
ARG VERSION
ARG COMMIT=unknown
ARG BUILD_DATE=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.vendor="Berth" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${BUILD_DATE}"

FROM base AS scheduler
COPY --from=build /src/bin/berth-scheduler /berth-scheduler
LABEL org.opencontainers.image.title="berth-scheduler" \
      org.opencontainers.image.description="kube-scheduler with plugins for GPUs, gangs and costs"
ENTRYPOINT ["/berth-scheduler"]
