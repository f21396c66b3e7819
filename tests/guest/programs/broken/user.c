// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A user in the kernel. It works with the device from its creation to its
 * removal, and complains if a work request completes that it did not post.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "broken.h"

#define DEPTH 16
#define BUFFER 4096
#define POSTED 0x706f7374
#define DONE 0x646f6e65

struct broken_wr {
	struct ib_cqe cqe;
	u32 magic;
};

struct broken_user {
	struct ib_device *ibdev;
	struct task_struct *thread;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u64 dma;
	void *buffer;
	struct broken_wr wrs[2 * DEPTH];
};

static struct ib_client broken_client;
static unsigned long completions;

static void broken_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct broken_wr *wr = container_of(wc->wr_cqe, struct broken_wr, cqe);

	WARN(wr->magic != POSTED, "completed twice: %x\n", wr->magic);
	WARN(wc->status == IB_WC_SUCCESS && wc->opcode == IB_WC_RECV &&
	     wc->byte_len > BUFFER, "%u bytes received\n", wc->byte_len);
	WRITE_ONCE(wr->magic, DONE);
	completions++;
}

static int broken_user_create(struct broken_user *user)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {
			.max_send_wr = DEPTH + 1,
			.max_recv_wr = DEPTH + 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};

	user->cq = ib_alloc_cq_any(user->ibdev, user, 4 * DEPTH,
				   IB_POLL_WORKQUEUE);
	if (IS_ERR(user->cq))
		return PTR_ERR(user->cq);
	init.send_cq = user->cq;
	init.recv_cq = user->cq;
	user->qp = ib_create_qp(user->pd, &init);
	if (!IS_ERR(user->qp))
		return 0;
	ib_free_cq(user->cq);
	return PTR_ERR(user->qp);
}

/*
 * Move to this state directly, as there is no peer. Return the state reached.
 */
static enum ib_qp_state broken_user_connect(struct broken_user *user)
{
	const struct ib_device_ops *ops = &user->ibdev->ops;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT };

	while (attr.qp_state <= IB_QPS_RTS &&
	       !ops->modify_qp(user->qp, &attr, IB_QP_STATE, NULL))
		attr.qp_state++;
	return attr.qp_state - 1;
}

static struct ib_cqe *broken_user_next(struct broken_user *user, int i)
{
	if (READ_ONCE(user->wrs[i].magic) == POSTED)
		return NULL;
	user->wrs[i].magic = POSTED;
	user->wrs[i].cqe.done = broken_done;
	return &user->wrs[i].cqe;
}

static void broken_user_post(struct broken_user *user, int i)
{
	struct ib_sge sge = {
		.addr = user->dma,
		.length = BUFFER,
		.lkey = user->pd->local_dma_lkey,
	};
	struct ib_recv_wr recv = { .sg_list = &sge, .num_sge = 1 };
	struct ib_send_wr send = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
	};

	recv.wr_cqe = broken_user_next(user, DEPTH + i);
	if (recv.wr_cqe && ib_post_recv(user->qp, &recv, NULL))
		user->wrs[DEPTH + i].magic = DONE;
	send.wr_cqe = broken_user_next(user, i);
	if (send.wr_cqe && ib_post_send(user->qp, &send, NULL))
		user->wrs[i].magic = DONE;
}

static void broken_user_round(struct broken_user *user)
{
	enum ib_qp_state state;
	int n, i;

	if (broken_user_create(user))
		return;
	memset(user->wrs, 0, sizeof(user->wrs));
	state = broken_user_connect(user);
	if (state == IB_QPS_RTS) {
		for (n = 0; n < 20 && !kthread_should_stop(); n++) {
			for (i = 0; i < DEPTH; i++)
				broken_user_post(user, i);
			usleep_range(1000, 2000);
		}
	}
	/*
	 * The RDMA core warns about a QP that cannot be drained in this state.
	 */
	if (state != IB_QPS_RESET)
		ib_drain_qp(user->qp);
	ib_destroy_qp(user->qp);
	ib_free_cq(user->cq);
}

static int broken_user_thread(void *data)
{
	struct broken_user *user = data;

	while (!kthread_should_stop()) {
		broken_user_round(user);
		msleep_interruptible(20);
	}
	return 0;
}

static int broken_user_add(struct ib_device *ibdev)
{
	struct broken_user *user;
	int ret = -ENOMEM;

	if (!ibdev->dev.parent || !dev_is_platform(ibdev->dev.parent->parent))
		return -EOPNOTSUPP;
	user = kzalloc(sizeof(*user), GFP_KERNEL);
	if (!user)
		return -ENOMEM;
	user->ibdev = ibdev;
	user->buffer = kzalloc(BUFFER, GFP_KERNEL);
	if (!user->buffer)
		goto err_user;
	user->pd = ib_alloc_pd(ibdev, 0);
	if (IS_ERR(user->pd)) {
		ret = PTR_ERR(user->pd);
		goto err_buffer;
	}
	user->dma = ib_dma_map_single(ibdev, user->buffer, BUFFER,
				      DMA_BIDIRECTIONAL);
	user->thread = kthread_run(broken_user_thread, user, "broken_user");
	if (IS_ERR(user->thread)) {
		ret = PTR_ERR(user->thread);
		goto err_pd;
	}
	ib_set_client_data(ibdev, &broken_client, user);
	return 0;

err_pd:
	ib_dma_unmap_single(ibdev, user->dma, BUFFER, DMA_BIDIRECTIONAL);
	ib_dealloc_pd(user->pd);
err_buffer:
	kfree(user->buffer);
err_user:
	kfree(user);
	return ret;
}

static void broken_user_remove(struct ib_device *ibdev, void *data)
{
	struct broken_user *user = data;

	kthread_stop(user->thread);
	ib_dma_unmap_single(ibdev, user->dma, BUFFER, DMA_BIDIRECTIONAL);
	ib_dealloc_pd(user->pd);
	kfree(user->buffer);
	kfree(user);
}

static struct ib_client broken_client = {
	.name = "broken_user",
	.add = broken_user_add,
	.remove = broken_user_remove,
};

int broken_user_init(void)
{
	return ib_register_client(&broken_client);
}

void broken_user_exit(void)
{
	ib_unregister_client(&broken_client);
	pr_info("broken_device: %lu work requests completed\n", completions);
}
