/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands to the device, and whether the device still works.
 */
#ifndef VRDMA_CTRL_H
#define VRDMA_CTRL_H

#include "vrdma.h"

/* The device executes no more commands. */
static inline bool vrdma_is_dead(const struct vrdma_dev *dev)
{
	return virtqueue_is_broken(dev->ctrl.vq);
}

void vrdma_ctrl_callback(struct virtqueue *vq);
void vrdma_ctrl_free(struct vrdma_dev *dev);
bool vrdma_needs_reset(struct vrdma_dev *dev);
unsigned int vrdma_timeout(void);
bool vrdma_is_gone(struct vrdma_dev *dev);
void vrdma_reset(struct vrdma_dev *dev);
void vrdma_fatal(struct vrdma_dev *dev);
void vrdma_wake(struct vrdma_dev *dev);
__printf(2, 3)
void vrdma_broken(struct vrdma_dev *dev, const char *format, ...);
void vrdma_wait_stopped(struct vrdma_dev *dev);
int vrdma_ctrl(struct vrdma_dev *dev, enum virtio_rdma_cmd command,
	       const void *req, size_t req_len, void *rsp, size_t rsp_len);

/* A command whose response is only a status, such as DESTROY_PD */
#define vrdma_ctrl_do(dev, command, req) \
	vrdma_ctrl(dev, command, req, sizeof(*(req)), NULL, 0)
#define vrdma_ctrl_ask(dev, command, req, rsp) \
	vrdma_ctrl(dev, command, req, sizeof(*(req)), rsp, sizeof(*(rsp)))
/*
 * A dead device has nothing left to destroy, so that is a success. An object of
 * the kernel is not in use any more: a device that refuses to destroy it is
 * broken, and dead from then on.
 */
#define vrdma_ctrl_destroy(dev, command, req, user) \
	vrdma_ctrl_ended(dev, command, vrdma_ctrl_do(dev, command, req), user)
int vrdma_ctrl_ended(struct vrdma_dev *dev, enum virtio_rdma_cmd command,
		     int ret, bool user);

#endif /* VRDMA_CTRL_H */
