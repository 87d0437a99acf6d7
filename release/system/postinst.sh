#!/bin/sh
# Tells systemd about a new or changed unit. The service is neither enabled nor started.
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload || true
  # After an upgrade, a service that runs goes on with the new binary.
  systemctl try-restart lispbox.service || true
fi
