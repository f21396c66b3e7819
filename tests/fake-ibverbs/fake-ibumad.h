/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A double of the part of libibumad that QEMU uses.
 *
 * A test names a directory in the environment of the program. In there it
 * listens on the socket "port" (SOCK_SEQPACKET): a port that is opened is a
 * connection to it, on which each message is a struct ib_user_mad with its MAD,
 * of 256 bytes: what the program sends, and what it is to receive. Without the
 * socket the port cannot be opened. When the test closes the connection, the
 * device is gone.
 *
 * A file of the directory that has the name of a function without "umad_",
 * "register2" or "send", makes it fail with the errno that is in there as a
 * number.
 */
#ifndef TESTS_FAKE_IBVERBS_FAKE_IBUMAD_H
#define TESTS_FAKE_IBVERBS_FAKE_IBUMAD_H

#define FAKE_IBUMAD_DIR "FAKE_IBUMAD_DIR"
#define FAKE_IBUMAD_PORT "port"

#endif
