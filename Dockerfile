# An image with Attest, for those who want one:
#     docker build -t attest . && docker run --rm -v "$PWD:/work" attest check --kernel ./libmine.so
# In it are gcc and NumPy, for kernels in C and Python, and bubblewrap, which needs `--security-opt seccomp=unconfined` to build
# its walls in a container.
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates cmake dpkg-dev file g++ ninja-build npm \
      pkg-config libboost1.81-dev libcli11-dev libeigen3-dev libflint-arb-dev libflint-dev libfmt-dev libmpfi-dev \
      libmpfr-dev librapidcheck-dev libseccomp-dev libsimdjson-dev libtomlplusplus-dev nlohmann-json3-dev zlib1g-dev
COPY . /source
RUN cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DATTEST_TESTS=OFF -DATTEST_BENCH=OFF \
      -DATTEST_FETCH_VEGA=ON && cmake --build /build && cd /build && cpack -G DEB

FROM debian:12-slim
COPY --from=build /build/attest_*.deb /tmp/
# The package names the libraries that it needs.
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/attest_*.deb bubblewrap gcc libc6-dev python3 \
      python3-numpy && rm -rf /var/lib/apt/lists/* /tmp/attest_*.deb
WORKDIR /work
ENTRYPOINT ["attest"]
CMD ["--help"]
