/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common parts of the fuzzers of one engine: objects, and rules that must hold
 * for any input.
 *
 * A broken rule ends in g_error(), which libFuzzer takes for a crash.
 */
#ifndef FUZZ_ENV_H
#define FUZZ_ENV_H

#include "fuzz-input.h"
#include "rdma/roce-state.h"
#include "../unit/wire-host.h"

/* Queue pairs, by place; the peer's ends have the same QPNs. */
enum {
    FUZZ_GSI,
    FUZZ_RC,
    FUZZ_RC_RTR,                    /* stays in RTR at first */
    FUZZ_UC,
    FUZZ_UD,
    FUZZ_RC_SMALL,                  /* MTU 256, one SGE, retries rarely */
    FUZZ_RC_SRQ,                    /* these use the SRQ */
    FUZZ_UC_SRQ,
    FUZZ_UD_SRQ,
    FUZZ_QPS
};
extern const uint32_t fuzz_qpns[FUZZ_QPS];
bool fuzz_is_ud(unsigned which);

/* Regions; the key says which. */
#define FUZZ_KEY_ALL     0x100      /* all rights */
#define FUZZ_KEY_READ    0x200      /* remote read only */
#define FUZZ_KEY_LOCAL   0x300      /* no remote rights */
#define FUZZ_KEY_HOLES   0x400      /* every other page is not there */
#define FUZZ_KEY_FAST    0x500      /* fast registration, mapping pending */
#define FUZZ_KEY_OTHER   0x600      /* of another PD */
#define FUZZ_KEY_DMA     0x700      /* all memory */
#define FUZZ_KEY_MW      0x800      /* window of type 1; its low bits change */
#define FUZZ_KEY_MW2     0x900      /* window of type 2, likewise */
#define FUZZ_KEY_SRQ     0xa00      /* of the SRQ's PD */
#define FUZZ_IOVA        UINT64_C(0x10000)
#define FUZZ_REGION      UINT64_C(0x8000)

/*
 * Bytes at the beginning of memory that nothing may write to: their regions
 * forbid it, and the fuzzers keep away with FUZZ_KEY_DMA.
 */
#define FUZZ_PROTECTED   0x10000

#define FUZZ_PDN  1
#define FUZZ_CQN  5
#define FUZZ_QKEY 0x11111111u
#define FUZZ_SRQ  1
#define FUZZ_SRQ_PDN 3
#define FUZZ_SRQ_WR 8
#define FUZZ_SRQ_SGE 4
/* In wr_ids: a receive; one of the SRQ. The rest counts. */
#define FUZZ_ID_RECV (UINT64_C(1) << 63)
#define FUZZ_ID_SRQ  (UINT64_C(1) << 62)
#define FUZZ_SEND_WR 16
#define FUZZ_RECV_WR 16
#define FUZZ_SEND_SGE 40
#define FUZZ_INLINE 128

/* Number of GIDs; even ones are IPv4. */
#define FUZZ_GIDS 2

typedef struct FuzzEnv {
    WireHost *host;
    RoceEngine *engine;
    unsigned side;                  /* 0 or 1: selects the addresses */
    int64_t now;
    struct {
        bool exists;
        bool odd;                   /* has attributes that may let it hang */
        uint64_t posted[2];         /* by RdmaQueue, all time */
        uint64_t retired_at_create[2];
        uint64_t last_id[2];        /* of the newest completion, plus 1 */
    } qp[FUZZ_QPS];
    uint64_t srq_posted;
    GHashTable *srq_ids;            /* that have not completed */
    unsigned wcs_seen;
    uint64_t fast_pages;            /* DMA address */
    bool cq_was_broken;             /* its QPs need not complete */
    bool blocked;                   /* this side may not send */
} FuzzEnv;

/* The engine on side 1 has side 0 as its peer, and the other way round. */
FuzzEnv *fuzz_env_new(unsigned side);
void fuzz_env_free(FuzzEnv *env);

void fuzz_gid(unsigned side, unsigned index, uint8_t gid[RDMA_GID_LEN]);
/* The path on which a frame comes to @env from its peer. */
/* A few multicast groups of both IP versions. */
void fuzz_group(unsigned which, uint8_t gid[RDMA_GID_LEN]);
void fuzz_path_to(const FuzzEnv *env, bool is_ipv4, RocePath *path);

/* Set the pages for the next REG_MR of the fast-registration MR. */
void fuzz_map_fast_region(FuzzEnv *env, unsigned npages);
/* Put the pages into a REG_MR for fuzz_post_send(); not for UD. */
void fuzz_reg_pages(FuzzEnv *env, RdmaSendWr *wr, unsigned npages);
/*
 * Bind the windows to parts of FUZZ_KEY_ALL, on FUZZ_RC: type 1 zero-based,
 * type 2 for reading.
 */
void fuzz_bind_windows(FuzzEnv *env);
/* The current key of a window */
uint32_t fuzz_window_key(FuzzEnv *env, uint32_t mwn);

void fuzz_qp_create(FuzzEnv *env, unsigned which);
void fuzz_qp_destroy(FuzzEnv *env, unsigned which);
/* Take a fresh or reset QP to RTS, or to RTR; false without its GID. */
bool fuzz_qp_connect(FuzzEnv *env, unsigned which, bool ipv6, bool rts);
void fuzz_qp_reset(FuzzEnv *env, unsigned which);
/* Modify a QP in any way. */
void fuzz_qp_modify(FuzzEnv *env, unsigned which, FuzzInput *in);

/*
 * Post if there is room, to the SRQ if the QP has it, and tell the engine;
 * fills in wr_id.
 */
void fuzz_post_send(FuzzEnv *env, unsigned which, RdmaSendWr *wr);
void fuzz_post_recv(FuzzEnv *env, unsigned which, RdmaRecvWr *wr);

/*
 * Take the next frame off the engine: contiguous in @frame, checked. Returns
 * its length, 0 if there is none.
 */
size_t fuzz_take_frame(FuzzEnv *env, uint8_t frame[ROCE_MAX_FRAME]);

/* Check the rules that must hold between two calls. */
void fuzz_check(FuzzEnv *env);

#endif /* FUZZ_ENV_H */
