/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-net-roce: a plain NIC with the guest ABI of virtio-net, and the RDMA
 * adapter of hw/rdma/net-roce-abi.h in the same virtio device, on the HCA core.
 *
 * Context: everything runs under the BQL. Work on objects, on virtqueues and on
 * frames is between rdma_hca_enter() and rdma_hca_leave(); the reentrancy guard
 * of the transport is engaged meanwhile, so that no register is accessed.
 */
#ifndef HW_RDMA_VIRTIO_NET_ROCE_INT_H
#define HW_RDMA_VIRTIO_NET_ROCE_INT_H

#include "hw/rdma/hca-vmstate.h"
#include "hw/rdma/net-roce-abi.h"
#include "hw/rdma/virtqueue.h"
#include "hw/virtio/virtio.h"
#include "net/net.h"
#include "qemu/bswap.h"
#include "qom/object.h"
#include "rdma/work.h"

#define TYPE_NET_ROCE "virtio-net-roce-device"
OBJECT_DECLARE_SIMPLE_TYPE(NetRoce, NET_ROCE)

#define NET_ROCE_MAX_AH 1024
#define NET_ROCE_MAX_SGE 32
/* Bytes of a frame: an IP packet of 65535, and headers with a VLAN tag */
#define NET_ROCE_FRAME_ROOM (65535 + 18)
/* Room for any request without its list of pages, and for any reply */
#define NET_ROCE_CMD_ROOM 128

/* For rdma_hca_put_off() */
#define NET_ROCE_PENDING_STATUS RDMA_HCA_PENDING_GUEST(0)
#define NET_ROCE_PENDING_RESET RDMA_HCA_PENDING_GUEST(1)
#define NET_ROCE_PENDING_NIC RDMA_HCA_PENDING_GUEST(2)

/* Properties */
typedef struct NetRoceConf {
    NICConf nic;
    uint16_t host_mtu;
    uint32_t queue_size;
    uint32_t max_qp;
    uint32_t max_cq;
    char *allowed_gids;
} NetRoceConf;

typedef enum NetRoceArm {
    NET_ROCE_ARM_NONE,
    NET_ROCE_ARM_SOLICITED,
    NET_ROCE_ARM_NEXT,
} NetRoceArm;

typedef struct NetRoceCq {
    RdmaHcaCq core;
    VirtQueue *vq;
    uint8_t arm;                    /* NetRoceArm */
} NetRoceCq;

/* An address handle; free if @pdn is 0 */
typedef struct NetRoceAh {
    uint32_t pdn;
    uint8_t bytes[sizeof(NetRoceAv)]; /* the NetRoceAv of the driver */
} NetRoceAh;

/* The WQE that was taken last */
typedef struct NetRoceTaken {
    VirtQueueElement *elem;
    size_t len;                     /* bytes in guest memory */
    uint32_t cost;
} NetRoceTaken;

/* The request in progress: the copy that is executed again, or NULL */
typedef struct NetRoceRequest {
    uint8_t class;
    uint8_t cmd;
    uint8_t align[6];
    uint8_t data[NET_ROCE_CMD_ROOM];
    uint64_t pages;                 /* address of the list of REG_USER_MR */
} NetRoceRequest;

struct NetRoce {
    VirtIODevice parent_obj;
    RdmaHca hca;
    NetRoceConf conf;
    uint32_t max_cq;                /* of the device and its backend */
    uint32_t max_qp;

    /* The NIC */
    uint64_t mac;                   /* as a number */
    NICState *nic;
    QEMUBH *nic_bh;
    bool link_up;                   /* as the driver reads it */
    bool tx_blocked;                /* the netdev has queued a frame */
    uint8_t *frame;                 /* for one frame of the driver */

    /* RoCE */
    bool has_roce;                  /* the driver has sent a RoCE command */
    bool ctrl_waiting;              /* until RdmaHcaOps.resume() */
    NetRoceRequest *ctrl_pending;
    NetRoceTaken send;              /* may be put back */
    NetRoceTaken recv;
    union {
        NetRoceSendWqe send;
        NetRoceRecvWqe recv;
        uint8_t bytes[sizeof(NetRoceSendWqe) +
                      NET_ROCE_MAX_SGE * sizeof(NetRoceSge)];
    } wqe;                          /* the copy of either */
    uint32_t n_ahs;                 /* entries of @ahs that were ever used */
    uint32_t n_saved_ahs;           /* in a migration stream */
    NetRoceAh *ahs;                 /* NET_ROCE_MAX_AH of them */
    RdmaVqHidden hidden;            /* during a load */

    /* Notifications for the driver when the backend is left */
    RdmaVqNotify notify;
    bool notify_config;
};

static inline NetRoce *net_roce_of(RdmaHca *hca)
{
    return container_of(hca, NetRoce, hca);
}

static inline NetRoceCq *net_roce_cq(RdmaHcaCq *cq)
{
    return container_of(cq, NetRoceCq, core);
}

static inline VirtQueue *net_roce_vq(NetRoce *s, uint32_t n)
{
    return virtio_get_queue(VIRTIO_DEVICE(s), n);
}

/*
 * May the device access guest memory? The driver of the authors sends commands
 * before DRIVER_OK, so FEATURES_OK decides.
 */
static inline bool net_roce_is_active(NetRoce *s)
{
    VirtIODevice *vdev = &s->parent_obj;

    return vdev->vm_running && (vdev->status & VIRTIO_CONFIG_S_FEATURES_OK) &&
           !virtio_device_disabled(vdev) && !s->hca.unrealizing &&
           !rdma_hca_is_pending(&s->hca, NET_ROCE_PENDING_RESET);
}

/* codec.c: bytes of the guest, and structures of the host */

void net_roce_get_av(const NetRoceAv *p, RdmaAv *av);
/* 0, or -EINVAL if the mask has unknown bits, or access unknown flags. */
int net_roce_get_qp_attr(const NetRoceModifyQp *p, RdmaQpAttr *attr,
                         uint32_t *mask);
void net_roce_put_qp_attr(NetRoceQpAttr *p, const RdmaQpAttr *attr);
/* The part that RC, UC and UD have in common; @len: bytes with SGEs */
void net_roce_get_send(const NetRoceSendWqe *p, size_t len, RdmaSendWr *wr);
void net_roce_get_sges(const NetRoceSge *p, uint32_t n, RdmaSge *sge);
void net_roce_put_cqe(NetRoceCqe *p, const RdmaWc *wc);

/* vq.c: virtqueues, as queues of the core */

/* For RdmaHcaOps.flush(): send notifications. */
void net_roce_vqs_flush(RdmaHca *hca);
/* Set the form of a new or loaded object: the virtqueues of its number. */
void net_roce_cq_start(NetRoce *s, NetRoceCq *cq);
void net_roce_qp_start(NetRoce *s, RdmaHcaQp *qp);
/* 0; -ENOMEM: the virtqueue is not set up; -EINVAL: it is smaller than @size */
int net_roce_vq_check(NetRoce *s, uint32_t n, uint32_t size);
/* Free the buffers for WQEs. */
void net_roce_scratch_free(NetRoce *s);

/* decode.c: WQEs, for RdmaHcaOps */

void net_roce_decode_send(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr);
void net_roce_decode_recv(RdmaHca *hca, RdmaHcaWq *wq, RdmaRecvWr *wr);

/* cmd.c: the 18 commands */

typedef struct NetRoceCommand {
    const char *name;
    uint16_t req_size;
    uint16_t rsp_size;
    RdmaCommand fault;              /* RDMA_COMMAND__MAX: no fault strikes */
    /*
     * Checks @req, a copy of NET_ROCE_CMD_ROOM bytes, and fills in @rsp, which
     * is zero. 0, or a negative errno; -EINPROGRESS: see RdmaHcaOps.resume().
     */
    int (*handler)(NetRoce *s, const NetRoceRequest *req, void *rsp);
    /* Instead: a verb for the object whose number is the request */
    int (*destroy)(RdmaHca *hca, uint32_t id);
} NetRoceCommand;

extern const NetRoceCommand net_roce_commands[NET_ROCE_NUM_CMDS];

/* Forget all address handles; their PDs are gone, or go next. */
void net_roce_ahs_reset(NetRoce *s);

/* ctrl.c: the control queue */

void net_roce_ctrl_run(NetRoce *s);
/* The command in progress has ended or was dropped. */
void net_roce_ctrl_forget(NetRoce *s);

/* nic.c: the NIC */

void net_roce_nic_init(NetRoce *s);
void net_roce_nic_free(NetRoce *s);
void net_roce_nic_reset(NetRoce *s);
/* The driver may have frames to send. */
void net_roce_nic_kick(NetRoce *s);
/* Tell the driver if the link has changed. */
void net_roce_nic_check_link(NetRoce *s);

/* vmstate.c: migration */

extern const VMStateDescription vmstate_net_roce_device;
/* For RdmaHcaOps */
extern const RdmaHcaObjectOps net_roce_cqs;
extern const RdmaHcaObjectOps net_roce_qps;
int net_roce_post_load(VirtIODevice *vdev);
/* Limits, MTU and MAC address, which come first in the stream */
extern const VMStateDescription vmstate_net_roce_limits;

/* props.c: properties */

void net_roce_props_init(ObjectClass *klass);
bool net_roce_conf_check(NetRoce *s, Error **errp);

#endif
