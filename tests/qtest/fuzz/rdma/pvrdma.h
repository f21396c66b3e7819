/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common parts of the fuzzer of pvrdma: its driver, and its objects. */
#ifndef TESTS_FUZZ_PVRDMA_H
#define TESTS_FUZZ_PVRDMA_H

#include "hw/rdma/pvrdma-abi.h"
#include "rdma-fuzz.h"

#define FUZZ_PV_DEVFN   (7 << 3 | 1)
#define FUZZ_PV_MSIX    0xe3000000ull
#define FUZZ_PV_REGS    0xe3010000ull
#define FUZZ_PV_UAR     0xe3020000ull
#define FUZZ_PV_PAGES   8           /* of doorbells */
#define FUZZ_PV_CTX     1

/* Guest memory. A directory is a page, a page table, and then its pages. */
#define FUZZ_PV_DSR     0x100000ull
#define FUZZ_PV_REQUEST 0x101000ull
#define FUZZ_PV_REPLY   0x102000ull
#define FUZZ_PV_EVENTS  0x103000ull
#define FUZZ_PV_CQNS    0x109000ull
#define FUZZ_PV_DIRS    0x200000ull
#define FUZZ_PV_DIR(n)  (FUZZ_PV_DIRS + (n) * 0x6000ull)
#define FUZZ_PV_STATE(n) (FUZZ_PV_DIR(n) + 0x2000)

/* Entries of queues, and SGEs of a WQE */
#define FUZZ_PV_WRS     16
#define FUZZ_PV_SGES    2
#define FUZZ_PV_SQ_STRIDE 128
#define FUZZ_PV_RQ_STRIDE 64

/* Directories by number: QPs have that of their place */
enum {
    FUZZ_PV_CQ_DIR = FUZZ_QPS,
    FUZZ_PV_SRQ_DIR,
    FUZZ_PV_MR_DIR,
    FUZZ_PV_LIST_DIR,               /* of FAST_REG */
    FUZZ_PV_ANY_DIR,
    FUZZ_PV_DIR_COUNT,
};

typedef struct FuzzPv {
    uint32_t pd[2];                 /* of the kernel, and of a process */
    uint32_t cq;
    uint32_t srq;
    uint32_t tail[FUZZ_QPS][2];     /* of SQ and RQ */
    uint32_t srq_tail;
} FuzzPv;

extern FuzzPv fuzz_pv;

/* pvrdma.c: the machine, and the driver's own steps */
/* Returns ERR; *@rsp is zero without a reply. */
uint32_t fuzz_pv_command(uint32_t cmd, void *req, size_t len, void *rsp,
                         size_t rsp_len);
/* Make directory @n of @npages, which have nothing in them. */
uint64_t fuzz_pv_dir(unsigned n, unsigned npages);
/* @checked: assert that each step succeeds. */
void fuzz_pv_bring_up(bool checked);
bool fuzz_pv_modify(unsigned place, RdmaQpState state);
/* Place a WQE with an SGE, and ring. */
void fuzz_pv_post_send(unsigned place, const PvrdmaSendWqe *wqe,
                       const PvrdmaSge *sge);
void fuzz_pv_post_recv(unsigned place, const PvrdmaRecvWqe *wqe,
                       const PvrdmaSge *sge);
/* For fuzz_op_frame() */
uint32_t fuzz_pv_psn(uint32_t qpn, bool response);
void fuzz_pv_doorbell(unsigned page, uint32_t offset, uint32_t value);

/* pvrdma-ops.c: steps of the input */
typedef void FuzzPvOp(FuzzIn *in);
FuzzPvOp *fuzz_pv_op(uint8_t n);

#endif
