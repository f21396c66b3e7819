/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pvrdma: a PCI function with the guest ABI of hw/rdma/pvrdma-abi.h, on the HCA
 * core.
 *
 * Context: everything runs under the BQL. Work on objects is between
 * rdma_hca_enter() and rdma_hca_leave(), except doorbells, which look an object
 * up and arm a CQ in the register handler. The reentrancy guard of the function
 * is engaged meanwhile, so that no register is accessed.
 */
#ifndef HW_RDMA_PVRDMA_INT_H
#define HW_RDMA_PVRDMA_INT_H

#include "hw/pci/pci_device.h"
#include "hw/rdma/hca.h"
#include "hw/rdma/pvrdma-abi.h"
#include "qemu/bswap.h"
#include "qemu/thread.h"
#include "qom/object.h"
#include "rdma/work.h"

#define TYPE_PVRDMA "pvrdma"
OBJECT_DECLARE_SIMPLE_TYPE(Pvrdma, PVRDMA)

/* Limits that properties are checked against */
#define PVRDMA_MAX_QP 65535         /* providers know 16 bits of a handle */
#define PVRDMA_MAX_CQ 65535
#define PVRDMA_MAX_SRQ 65535
#define PVRDMA_MIN_QP_WR 512        /* of the MAD layer */
#define PVRDMA_MAX_QP_WR 16384
#define PVRDMA_MIN_CQE 1024         /* of the MAD layer */
#define PVRDMA_MAX_CQE (1u << 20)
#define PVRDMA_MIN_SGE 2            /* of the MAD layer */
#define PVRDMA_MAX_SGE 128          /* more would not fit into a page */
#define PVRDMA_MAX_MR_SIZE ((uint64_t)PVRDMA_MAX_PAGES << RDMA_PAGE_SHIFT)
#define PVRDMA_MAX_UAR 8192
#define PVRDMA_MAX_GIDS 256
#define PVRDMA_MAX_MR 0xfffffe      /* keys have 24 bits for the number */
#define PVRDMA_MAX_PD 65536
#define PVRDMA_MAX_SRQ_WR (1u << 16)
#define PVRDMA_MAX_RD_ATOMIC 128

/* The user of UAR page 0: the kernel. Others are processes, by their page. */
#define PVRDMA_KERNEL 0

/* For rdma_hca_put_off() */
#define PVRDMA_PENDING_RESET RDMA_HCA_PENDING_GUEST(0)

/* Properties */
typedef struct PvrdmaConf {
    char *netdev;
    RdmaBackend *rdmadev;
    MACAddr mac;
    uint64_t sys_image_guid;
    uint64_t max_mr_size;
    uint64_t max_mr_pages;
    uint32_t max_qp;
    uint32_t max_qp_wr;
    uint32_t max_sge;
    uint32_t max_cq;
    uint32_t max_cqe;
    uint32_t max_mr;
    uint32_t max_pd;
    uint32_t max_srq;
    uint32_t max_srq_wr;
    uint32_t max_rd_atomic;
    uint32_t max_uar;
    uint32_t gid_table_len;
    char *allowed_gids;
} PvrdmaConf;

/* A ring of a queue. Indices run freely; the guest sees their low bits. */
typedef struct PvrdmaRing {
    RdmaHcaCursor elements;
    uint64_t state;                 /* address of the PvrdmaRingState */
    uint32_t size;                  /* entries, a power of 2 */
    uint32_t stride;
    uint32_t index;                 /* the next one of the device */
    uint32_t seen;                  /* the guest's index, when last read */
    uint32_t freed;                 /* of a WQ: the head that the guest sees */
    bool stopped;                   /* do not access: the QP is in RESET */
} PvrdmaRing;

typedef enum PvrdmaArm {
    PVRDMA_ARM_NONE,
    PVRDMA_ARM_SOLICITED,
    PVRDMA_ARM_NEXT,
} PvrdmaArm;

typedef struct PvrdmaCq {
    RdmaHcaCq core;
    PvrdmaRing ring;
    RdmaHcaExtents pages;
    uint32_t ctx;                   /* as RdmaHcaPd.context */
    PvrdmaArm arm;
    bool fired;                     /* is in Pvrdma.fired */
    QTAILQ_ENTRY(PvrdmaCq) next_fired;
} PvrdmaCq;

typedef struct PvrdmaSrq {
    RdmaHcaSrq core;
    PvrdmaRing ring;
    RdmaHcaExtents pages;
} PvrdmaSrq;

typedef struct PvrdmaQp {
    RdmaHcaQp core;
    PvrdmaRing sq;
    PvrdmaRing rq;
    RdmaHcaExtents pages;
    uint32_t send_pages;            /* of @pages, for the SQ */
} PvrdmaQp;

/* A ring that the device fills and the driver consumes */
typedef struct PvrdmaDeviceRing {
    uint64_t state;                 /* address of the PvrdmaRingState */
    uint64_t elements;
    uint32_t size;
    uint32_t index;
} PvrdmaDeviceRing;

/* Where a command that destroys many objects goes on */
typedef struct PvrdmaDrop {
    unsigned kind;
    uint32_t id;
    int ret;                        /* of the last one that failed */
} PvrdmaDrop;

/* The command that was requested last */
typedef struct PvrdmaCommand {
    union {
        PvrdmaCmdHead head;
        uint8_t bytes[PVRDMA_CMD_ROOM];
    } req;
    bool busy;                      /* the command is in progress */
    bool again;                     /* the command was tried before */
    bool late;                      /* the driver may have read ERR */
    bool waiting;                   /* for RdmaHcaOps.resume() */
    int fault;                      /* error for ERR from a fault, or 0 */
    PvrdmaDrop drop;
    uint32_t ended;                 /* commands, all time */
    QemuCond done;                  /* with the BQL: @ended has changed */
} PvrdmaCommand;

struct Pvrdma {
    PCIDevice parent_obj;
    RdmaHca hca;
    PvrdmaConf conf;

    MemoryRegion regs;
    MemoryRegion uar;
    VMChangeStateEntry *vm_change;
    /*
     * As the last handler has noted it. The run state changes earlier, when
     * vCPUs may still write to the device.
     */
    bool vm_running;

    uint32_t dsr_low;
    uint32_t err;
    uint32_t icr;
    uint32_t imr;
    bool active;                    /* after ACTIVATE */

    /* Contents of the shared region, if @dsr is not 0 */
    uint64_t dsr;
    uint64_t request;
    uint64_t response;
    uint32_t driver_version;
    PvrdmaDeviceRing events;
    PvrdmaDeviceRing completions;

    PvrdmaCommand cmd;
    unsigned long *contexts;        /* bits of UAR pages in use */
    QTAILQ_HEAD(, PvrdmaCq) fired;  /* for the ring of completions */
    QEMUTimer *retry;               /* a ring of the device was full */
    uint8_t *wqe;                   /* the one that was taken last */
};

static inline Pvrdma *pvrdma_of(RdmaHca *hca)
{
    return container_of(hca, Pvrdma, hca);
}

static inline const RdmaRam *pvrdma_ram(const Pvrdma *s)
{
    return rdma_hca_ram(&s->hca);
}

static inline uint32_t pvrdma_version(const Pvrdma *s)
{
    return s->hca.limits.host_numbers ? PVRDMA_VERSION_HANDLES
                                      : PVRDMA_VERSION_WIDE_PFN;
}

static inline PvrdmaCq *pvrdma_cq(RdmaHcaCq *cq)
{
    return container_of(cq, PvrdmaCq, core);
}

static inline PvrdmaQp *pvrdma_qp(RdmaHcaQp *qp)
{
    return container_of(qp, PvrdmaQp, core);
}

/* codec.c: bytes of the guest, and structures of the host */

/* SGEs go to @sge. False: @wr has a flaw, and completes with an error. */
bool pvrdma_get_send(const PvrdmaSendWqe *wqe, RdmaQpType type, bool kernel,
                     uint32_t max_sge, RdmaSge *sge, RdmaSendWr *wr,
                     RdmaHcaPages *pages);
bool pvrdma_get_recv(const PvrdmaRecvWqe *wqe, uint32_t max_sge, RdmaSge *sge,
                     RdmaRecvWr *wr);
void pvrdma_put_cqe(PvrdmaCqe *cqe, const RdmaWc *wc, bool kernel);
void pvrdma_get_qp_attr(const PvrdmaQpAttr *p, RdmaQpAttr *attr);
void pvrdma_put_qp_attr(PvrdmaQpAttr *p, const RdmaQpAttr *attr);

/* state.c: what the device may do */

/* May the device access guest memory? */
bool pvrdma_is_active(Pvrdma *s);
/*
 * The result of pvrdma_is_active() may have changed: update core and backend,
 * in the bottom half if the device is busy.
 */
void pvrdma_update_running(Pvrdma *s);
/* Of RdmaHcaOps: the same between enter and leave */
void pvrdma_update_running_inside(RdmaHca *hca);
/* Is it a context, or the kernel? */
bool pvrdma_has_context(const Pvrdma *s, uint32_t ctx);

/* irq.c: interrupts */

/* Messages may have effects at once: call between enter and leave. */
void pvrdma_interrupt(Pvrdma *s, unsigned vector);
bool pvrdma_is_masked(const Pvrdma *s, unsigned vector);
uint32_t pvrdma_read_icr(Pvrdma *s);
void pvrdma_reset_icr(Pvrdma *s);

/* notify.c: the rings of the device */

/* Set up both rings from the directories in @dsr. False: one is invalid. */
bool pvrdma_notify_start(Pvrdma *s, const PvrdmaDsr *dsr);
/* Set the sizes of the rings: migration loads their addresses. */
void pvrdma_notify_init(Pvrdma *s);
/* Report CQ @cq in the ring of completions. */
void pvrdma_notify_fire(Pvrdma *s, PvrdmaCq *cq);
void pvrdma_notify_forget(Pvrdma *s, PvrdmaCq *cq);
/* Write what waits, and interrupt. */
void pvrdma_notify_completions(Pvrdma *s);
void pvrdma_notify_events(Pvrdma *s);

/* ring.c: rings of queues as the core sees them */

extern const RdmaHcaWqOps pvrdma_wq_ops;
extern const RdmaHcaCqOps pvrdma_cq_ops;

/* Pages that @size elements take */
uint64_t pvrdma_ring_pages(uint32_t size, uint32_t stride);
uint32_t pvrdma_send_stride(uint32_t max_sge);
uint32_t pvrdma_recv_stride(uint32_t max_sge);
/*
 * Describe a ring, whose device indices are set before. @state: where the first
 * of @pages has its indices; @base: the number of the page with its elements
 */
void pvrdma_ring_init(PvrdmaRing *ring, const RdmaHcaExtents *pages,
                      size_t state, uint32_t base, uint32_t size,
                      uint32_t stride);
/* Of RdmaHcaOps */
void pvrdma_decode_send(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr);
void pvrdma_decode_recv(RdmaHca *hca, RdmaHcaWq *wq, RdmaRecvWr *wr);

/* cmd-*.c: handlers of commands */

/*
 * They check @req, which is a copy, and fill in what follows the head of @rsp,
 * which is zero. They return 0, or a negative errno. After -EINPROGRESS they
 * are called again with the same @req.
 */
typedef int PvrdmaHandler(Pvrdma *s, const void *req, void *rsp);

/* The handle in a request that is a PvrdmaCmdHandle */
static inline uint32_t pvrdma_handle_of(const void *req)
{
    return le32_to_cpu(((const PvrdmaCmdHandle *)req)->handle);
}

PvrdmaHandler pvrdma_query_port;
PvrdmaHandler pvrdma_query_pkey;
PvrdmaHandler pvrdma_create_bind;
PvrdmaHandler pvrdma_destroy_bind;
PvrdmaHandler pvrdma_create_uc;
PvrdmaHandler pvrdma_destroy_uc;
PvrdmaHandler pvrdma_create_pd;
PvrdmaHandler pvrdma_destroy_pd;
PvrdmaHandler pvrdma_create_mr;
PvrdmaHandler pvrdma_destroy_mr;
PvrdmaHandler pvrdma_create_cq;
PvrdmaHandler pvrdma_resize_cq;
PvrdmaHandler pvrdma_destroy_cq;
PvrdmaHandler pvrdma_create_qp;
PvrdmaHandler pvrdma_modify_qp;
PvrdmaHandler pvrdma_query_qp;
PvrdmaHandler pvrdma_destroy_qp;
PvrdmaHandler pvrdma_create_srq;
PvrdmaHandler pvrdma_modify_srq;
PvrdmaHandler pvrdma_query_srq;
PvrdmaHandler pvrdma_destroy_srq;

/* The fewest pages that an object has; those of a QP with its @send_pages */
uint64_t pvrdma_cq_pages(uint32_t cqe);
uint64_t pvrdma_srq_pages(const RdmaSrqAttr *attr);
uint64_t pvrdma_qp_send_pages(const RdmaQpInitAttr *init);
uint64_t pvrdma_qp_pages(const RdmaQpInitAttr *init, uint32_t send_pages);
/* Are the PD, the CQs and the SRQ, which exist, of the same context? */
bool pvrdma_qp_has_one_context(RdmaHca *hca, const RdmaQpInitAttr *init);
/* Set the form of an object, rings in its pages. Its attributes are set. */
void pvrdma_cq_start(PvrdmaCq *cq);
void pvrdma_srq_start(PvrdmaSrq *srq);
void pvrdma_qp_start(PvrdmaQp *qp);
/* For RdmaHcaObjectOps.free() */
void pvrdma_cq_free(RdmaHca *hca, void *obj);
void pvrdma_srq_free(RdmaHca *hca, void *obj);
void pvrdma_qp_free(RdmaHca *hca, void *obj);
/*
 * Destroy the object. If that fails, do not access its memory any more, because
 * the driver frees it in any case.
 */
int pvrdma_cq_drop(Pvrdma *s, uint32_t cqn);
int pvrdma_srq_drop(Pvrdma *s, uint32_t srqn);
int pvrdma_qp_drop(Pvrdma *s, uint32_t qpn);

/* cmd.c: the command slot */

/*
 * The driver wrote REQUEST: start the command in the slot. Returns when a
 * synchronous command is done; another command may still be in progress.
 */
void pvrdma_cmd_request(Pvrdma *s);
/* Continue the command in progress, if there is one. */
void pvrdma_cmd_run(Pvrdma *s);
void pvrdma_cmd_forget(Pvrdma *s);
/*
 * After loading: prepare to repeat the command in progress. False: the device
 * does not have that command.
 */
bool pvrdma_cmd_load(Pvrdma *s);

/* reset.c */

void pvrdma_reset(Pvrdma *s);

/* dsr.c: the shared region */

/* The driver has written its address: read it, and fill in the caps. */
void pvrdma_dsr_set(Pvrdma *s, uint64_t addr);

/* props.c: properties */

void pvrdma_props_init(ObjectClass *klass);
bool pvrdma_conf_check(Pvrdma *s, Error **errp);
/* Does the backend allow what the driver needs? Check after attaching it. */
bool pvrdma_limits_check(const Pvrdma *s, Error **errp);

/* vmstate.c: migration */

extern const VMStateDescription vmstate_pvrdma;
/* For RdmaHcaOps */
extern const RdmaHcaObjectOps pvrdma_cqs;
extern const RdmaHcaObjectOps pvrdma_srqs;
extern const RdmaHcaObjectOps pvrdma_qps;
/* The limits, which come first in the stream */
extern const VMStateDescription vmstate_pvrdma_limits;

/* regs.c: registers and doorbells */

void pvrdma_regs_init(Pvrdma *s);

#endif
