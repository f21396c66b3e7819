/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A double of libibverbs that a test directs.
 *
 * The library has the soname and the symbol versions of the real one, so that
 * a program finds it through LD_LIBRARY_PATH. It offers one RoCE device,
 * "fake0", whose queue pairs talk to each other within the process: messages
 * are copied between registered regions. Like a kernel it holds on to the
 * pages of a region: a shared mapping that was registered may be unmapped.
 *
 * A line of text is a command:
 *
 *   fail VERB ERRNO [after N] [times M]
 *                         M calls (1; 0: all) fail, behind N that do not
 *   forget VERB           none fails any more
 *   delay VERB            calls wait, until released
 *   release [VERB]        let those go on (all of them), and the next ones
 *   await VERB [N]        answer when N calls (1) wait
 *   auto on|off           whether work requests execute by themselves (on)
 *   complete QPN send|recv [STATUS] [count N]
 *                         complete the oldest, without moving data; after an
 *                         error the QP goes to ERR
 *   wc CQ KEY=VALUE...    put a work completion into a CQ; the keys are
 *                         wr_id, status, opcode, qp_num, src_qp, byte_len,
 *                         flags, imm, vendor_err
 *   event TYPE [NUMBER]   an asynchronous event of the QP, CQ or SRQ NUMBER,
 *                         or of the port or the device
 *   gid INDEX ADDRESS|none [v1|v2|ib] [ifindex N]
 *                         the address is one of IPv4 or IPv6
 *   port up|down          with its event
 *   link ethernet|infiniband
 *   mtu 256...4096        of the port
 *   attr NAME VALUE       a limit of ibv_device_attr, such as max_qp
 *   violations P_KEY Q_KEY
 *                         counters of violations of the port
 *   sysfs DIRECTORY       ibdev_path of the device
 *   memlock BYTES         limit of registered memory
 *   keep on|off           whether regions keep their pages (on); without, they
 *                         can be measured, but not used
 *   device gone           DEVICE_FATAL; from then on verbs fail with EIO, and
 *                         the device is not listed
 *   device back           it is listed; open contexts stay dead
 *   count                 objects alive: "context=1 pd=0 mr=0 ..."
 *   objects               each of them in a line: "qp number=0x1107 ..."
 *   calls VERB            number of calls
 *   log                   the calls so far, each with its result
 *   log clear
 *
 * VERB is the name of a function without "ibv_", STATUS and TYPE are names of
 * libibverbs without "IBV_WC_" and "IBV_EVENT_", ERRNO is a name or a number.
 * Numbers of CQs and SRQs, which have none in libibverbs, are their handles.
 *
 * The answer to a command is lines of text, and a last line "ok" or
 * "error: WHY". When the test closes the connection, waiting calls go on.
 *
 * Two mistakes of a program that the real library may forgive are fatal here:
 * use of a destroyed object, and a second destroy.
 */
#ifndef TESTS_FAKE_IBVERBS_FAKE_IBVERBS_H
#define TESTS_FAKE_IBVERBS_FAKE_IBVERBS_H

/* Where to listen for the test; a Unix stream socket. */
#define FAKE_IBVERBS_SOCKET "FAKE_IBVERBS_SOCKET"
/* Commands to execute when the library is loaded, with ';' between them. */
#define FAKE_IBVERBS_SCRIPT "FAKE_IBVERBS_SCRIPT"

#define FAKE_IBVERBS_DEVICE "fake0"
#define FAKE_IBVERBS_GIDS 16

#endif
