# Two images from one file: `service` (API and dashboard, no torch) and `runner` (a worker with the trainer).
FROM python:3.12-slim AS base
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1
WORKDIR /app
COPY requirements.lock pyproject.toml README.md ./
COPY fitting fitting
COPY rlcast rlcast
COPY api api
COPY migrations migrations
COPY web web
COPY runners runners
RUN useradd --create-home rlcast && install -d -o rlcast /data /work

FROM base AS service
RUN pip install -c requirements.lock '.[service]'
USER rlcast
EXPOSE 8700
CMD ["python", "-m", "uvicorn", "web.app:create_app", "--factory", "--host", "0.0.0.0", "--port", "8700"]

FROM base AS runner
# The CPU build of torch; a GPU host builds with TORCH_INDEX=https://pypi.org/simple.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --index-url "$TORCH_INDEX" --extra-index-url https://pypi.org/simple "$(grep -i '^torch==' requirements.lock)" \
 && pip install -c requirements.lock '.[runner-cpu]'
USER rlcast
CMD ["rlcast", "worker"]
