# A static program in an empty image. It runs http and wait tasks; for commands, or task types of your own, copy
# /weaver (or your program) into an image that has what they need.
#   docker build -t weaver:local .
#   docker buildx build --platform linux/amd64,linux/arm64 -t REGISTRY/weaver:TAG --push .
ARG GO_IMAGE=golang:1.26
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
# timetzdata embeds the time zones. The folders get the owner of the process below; new volumes copy that,
# and /buckets/weaver is the bucket of the S3 server of compose.yaml.
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
	go build -trimpath -buildvcs=false -tags timetzdata -ldflags '-s -w' -o /out/weaver ./cmd/weaver && \
	mkdir -p /root-fs/blobs /root-fs/buckets/weaver /root-fs/secrets /root-fs/metrics /root-fs/state /root-fs/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=65532:65532 /root-fs/ /
COPY --from=build /out/weaver /weaver
ENV XDG_STATE_HOME=/state
USER 65532:65532
EXPOSE 8080
# A worker answers with --health :8080. To probe readiness, name the URL: /weaver healthcheck http://127.0.0.1:8080/readyz
HEALTHCHECK --interval=10s --timeout=4s --start-period=20s --retries=3 CMD ["/weaver", "healthcheck"]
ENTRYPOINT ["/weaver"]
