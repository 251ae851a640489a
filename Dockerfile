# The images of the commands that run in a cluster, each a target: scheduler, node-agent, extender. `make image`, `make
# image-node-agent` and `make image-extender` build them with docker, podman or buildah.

# Another image of Go 1.26 with make and git does as well, for example one from your own registry.
ARG GO_IMAGE=golang:1.26-bookworm
# The node agent starts nvidia-smi, which the container runtime adds and which needs glibc.
ARG GLIBC_IMAGE=debian:bookworm-slim

# Compiles on the machine's own platform for that of the image, so nothing is emulated.
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS source
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .

# Each image has a stage of its own that compiles, so that its build leaves out the others. Not every builder passes
# arguments on from stage to stage.
FROM source AS node-agent-build
ARG TARGETOS=linux
ARG TARGETARCH=amd64
# The version is our own, without that of Kubernetes. Commit, state and date are stamped into the binary.
ARG VERSION
ARG COMMIT=unknown
ARG TREE_STATE=clean
ARG BUILD_DATE=1970-01-01T00:00:00Z
RUN make node-agent GIT_COMMIT=${COMMIT} GIT_TREE_STATE=${TREE_STATE} BUILD_DATE=${BUILD_DATE} \
      ${VERSION:+VERSION=${VERSION}} GOOS=${TARGETOS} GOARCH=${TARGETARCH}

FROM source AS scheduler-build
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION
ARG COMMIT=unknown
ARG TREE_STATE=clean
ARG BUILD_DATE=1970-01-01T00:00:00Z
RUN make scheduler GIT_COMMIT=${COMMIT} GIT_TREE_STATE=${TREE_STATE} BUILD_DATE=${BUILD_DATE} \
      ${VERSION:+VERSION=${VERSION}} GOOS=${TARGETOS} GOARCH=${TARGETARCH}

FROM source AS extender-build
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION
ARG COMMIT=unknown
ARG TREE_STATE=clean
ARG BUILD_DATE=1970-01-01T00:00:00Z
RUN make extender GIT_COMMIT=${COMMIT} GIT_TREE_STATE=${TREE_STATE} BUILD_DATE=${BUILD_DATE} \
      ${VERSION:+VERSION=${VERSION}} GOOS=${TARGETOS} GOARCH=${TARGETARCH}

FROM ${GLIBC_IMAGE} AS node-agent
COPY --from=node-agent-build /src/bin/berth-node-agent /berth-node-agent
ARG VERSION
ARG COMMIT=unknown
ARG BUILD_DATE=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="berth-node-agent" \
      org.opencontainers.image.description="publishes which GPUs of a node are in use, and how they are linked" \
      org.opencontainers.image.vendor="Berth" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${BUILD_DATE}"
ENTRYPOINT ["/berth-node-agent"]

# As the scheduler's below: one static file and certificate authorities.
FROM scratch AS extender
COPY --from=extender-build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=extender-build /src/bin/berth-extender /berth-extender
USER 65532:65532
ARG VERSION
ARG COMMIT=unknown
ARG BUILD_DATE=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="berth-extender" \
      org.opencontainers.image.description="GPUAware and CostOptimized behind the HTTP extender protocol of kube-scheduler" \
      org.opencontainers.image.vendor="Berth" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${BUILD_DATE}"
ENTRYPOINT ["/berth-extender"]

# One static file and certificate authorities; time zones are compiled in.
FROM scratch AS scheduler
COPY --from=scheduler-build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=scheduler-build /src/bin/berth-scheduler /berth-scheduler
# A number, so that a kubelet can check runAsNonRoot.
USER 65532:65532
ARG VERSION
ARG COMMIT=unknown
ARG BUILD_DATE=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="berth-scheduler" \
      org.opencontainers.image.description="kube-scheduler with plugins for GPUs, gangs and costs" \
      org.opencontainers.image.vendor="Berth" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${BUILD_DATE}"
ENTRYPOINT ["/berth-scheduler"]
