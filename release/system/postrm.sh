#!/bin/sh
# Leaves nothing but the data in /var/lib/lispbox, which the administrator removes.
set -e
if [ "$1" = purge ]; then
  rmdir "${DPKG_ROOT:-}/etc/lispbox" 2>/dev/null || true
  rm -rf "${DPKG_ROOT:-}/var/cache/lispbox" "${DPKG_ROOT:-}/var/cache/private/lispbox"
fi
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload || true
fi
