# The images of the commands that run in a cluster, each a target: scheduler, extender, node-agent. Build them with `make image
# COMMAND=extender` and so on, which passes COMMAND along with the target. `make dist` packs the same files without a container
# engine.
#
# Each command has an image of its own, because no node runs two of them: an image with all three files is as large as the
# three together (64 MB compressed instead of 17 to 24 MB), and would put the scheduler on the base that only the node agent
# needs.

# The toolchain of go.mod, so that the same commit gives the same binary. Another image of Go with make and git does as well, for
# example one from your own registry, and one with a digest cannot be moved. The registry is written out: a builder without a list
# of registries, such as Debian's buildah, has none for short names.
ARG GO_IMAGE=docker.io/library/golang:1.26.8-bookworm
# The node agent starts nvidia-smi, which the container runtime adds and which needs glibc.
ARG GLIBC_IMAGE=docker.io/library/debian:bookworm-slim

# Compiles on the machine's own platform for that of the image, so nothing is emulated.
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
# A proxy for modules, where the public one cannot be reached, and its database of checksums or "off".
ARG GOPROXY
ARG GOSUMDB
RUN go mod download
COPY . .
ARG TARGETOS=linux
ARG TARGETARCH=amd64
# The version is our own, without that of Kubernetes. Commit, state and date are stamped into the binary.
ARG VERSION
ARG COMMIT=unknown
ARG TREE_STATE=clean
ARG BUILD_DATE=1970-01-01T00:00:00Z
ARG COMMAND=scheduler
RUN make build COMMANDS=${COMMAND} GIT_COMMIT=${COMMIT} GIT_TREE_STATE=${TREE_STATE} BUILD_DATE=${BUILD_DATE} \
      ${VERSION:+VERSION=${VERSION}} GOOS=${TARGETOS} GOARCH=${TARGETARCH} && \
    make bin/THIRD_PARTY_LICENSES COMMAND=${COMMAND}

FROM ${GLIBC_IMAGE} AS node-agent
COPY --from=build /src/bin/berth-node-agent /berth-node-agent
COPY --from=build /src/LICENSE /src/bin/THIRD_PARTY_LICENSES /licenses/
ARG VERSION
ARG COMMIT=unknown
ARG BUILD_DATE=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="berth-node-agent" \
      org.opencontainers.image.description="publishes how the GPUs of a node are linked" \
      org.opencontainers.image.vendor="Berth" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${BUILD_DATE}"
ENTRYPOINT ["/berth-node-agent"]

# One static file, below, and licenses; time zones and certificate authorities are compiled in.
FROM scratch AS static
COPY --from=build /src/LICENSE /src/bin/THIRD_PARTY_LICENSES /licenses/
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

FROM static AS extender
COPY --from=build /src/bin/berth-extender /berth-extender
LABEL org.opencontainers.image.title="berth-extender" \
      org.opencontainers.image.description="GPUAware and CostOptimized behind the HTTP extender protocol of kube-scheduler"
ENTRYPOINT ["/berth-extender"]

FROM static AS scheduler
COPY --from=build /src/bin/berth-scheduler /berth-scheduler
LABEL org.opencontainers.image.title="berth-scheduler" \
      org.opencontainers.image.description="kube-scheduler with plugins for GPUs, gangs and costs"
ENTRYPOINT ["/berth-scheduler"]
