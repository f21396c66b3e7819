# SPDX-License-Identifier: GPL-2.0-or-later
"""The machinery of guest tests. guestkit (tools/lab) boots the guests. The
docstring of each module says what the module is for."""
