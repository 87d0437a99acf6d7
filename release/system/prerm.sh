#!/bin/sh
# Stops the service before the binary goes. An upgrade restarts it instead.
set -e
case "$1" in
  remove | 0)
    if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
      systemctl --no-reload disable --now lispbox.service || true
    fi
    ;;
esac
