# One image for the farm's own parts: scheduler, exporter, adb server, worker. compose.yaml says which runs where.
FROM debian:bookworm-20250520-slim@sha256:90522eeb7e5923ee2b871c639059537b30521272f10ca86fdbbbb2b75a8c40cd

WORKDIR /opt/pocketfarm
COPY scripts scripts
RUN sh scripts/setup.sh --packages && apt-get install -y -qq --no-install-recommends procps \
    && rm -rf /var/lib/apt/lists/*

COPY . .
RUN sh scripts/setup.sh \
    && useradd --system --home-dir /var/lib/pocketfarm --create-home --groups plugdev farm \
    && install -d -o farm -m 700 /tls

USER farm
VOLUME /var/lib/pocketfarm
ENV PATH=/opt/pocketfarm/.venv/bin:/usr/bin:/bin PYTHONUNBUFFERED=1
CMD ["farm", "--help"]
