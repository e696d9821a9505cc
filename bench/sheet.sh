#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# bench/sheet.sh BUILD OUT [--seconds N] [OPTION...]
#
# Measures what docs/numbers.md publishes for GPUs, with the GPUs that are there: see sheet/sheet.py,
# or --help. Needs python3, its standard library alone.
exec python3 -B "$(dirname "${BASH_SOURCE[0]}")/sheet/sheet.py" "$@"
