// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Work requests of the kernel that have not completed.
 *
 * To users in the kernel wr_id is a pointer, which they follow. So the device
 * gets a number in its place, and a completion has to have the number of a
 * request that may complete then. Any other completion shows a broken device.
 *
 * The upper half of the number is the generation of the work queue, which is
 * new after a reset. The lower half counts the requests of a queue pair; they
 * complete in order. Those of an SRQ do not: there it is the index of an entry,
 * which is not used again before it completes.
 */
#include <linux/slab.h>

#include "queue.h"

#define GENERATION_SHIFT 32
/* A receive of an SRQ is lost if its QP is reset before it completes. */
#define SRQ_ENTRIES_PER_WR 2

static void vrdma_requests_renew(struct vrdma_dev *dev, struct vrdma_wq *wq)
{
	wq->generation = atomic_inc_return(&dev->generation);
}

/* For a queue pair: an entry for each of @slots */
int vrdma_requests_init(struct vrdma_dev *dev, struct vrdma_wq *wq, u32 slots)
{
	wq->requests = kvcalloc(slots, sizeof(*wq->requests), GFP_KERNEL);
	if (!wq->requests)
		return -ENOMEM;
	vrdma_requests_renew(dev, wq);
	return 0;
}

int vrdma_requests_init_shared(struct vrdma_dev *dev, struct vrdma_wq *wq)
{
	u32 n = min_t(u32, SRQ_ENTRIES_PER_WR * wq->max_wr, VRDMA_SRQ_DEPTH_MAX);

	wq->unused = kvcalloc(n, sizeof(*wq->unused), GFP_KERNEL);
	if (!wq->unused || vrdma_requests_init(dev, wq, n))
		return -ENOMEM;
	wq->num_requests = n;
	/* The lowest is used first. */
	for (; wq->num_unused < n; wq->num_unused++)
		wq->unused[wq->num_unused] = n - 1 - wq->num_unused;
	return 0;
}

void vrdma_requests_free(struct vrdma_wq *wq)
{
	kvfree(wq->unused);
	kvfree(wq->requests);
	wq->unused = NULL;
	wq->requests = NULL;
}

/* The queue pair is in RESET, so its requests do not complete any more. */
void vrdma_requests_reset(struct vrdma_dev *dev, struct vrdma_wq *wq)
{
	unsigned long flags;

	if (!wq->requests)
		return;
	spin_lock_irqsave(&wq->ring.lock, flags);
	wq->completed = wq->posted;
	vrdma_requests_renew(dev, wq);
	spin_unlock_irqrestore(&wq->ring.lock, flags);
}

static bool vrdma_requests_shared(const struct vrdma_wq *wq)
{
	return wq->unused;
}

static struct vrdma_request *vrdma_request_at(struct vrdma_wq *wq, u32 n)
{
	return &wq->requests[vrdma_requests_shared(wq) ? n : n & wq->ring.mask];
}

/*
 * Has nothing completed since the last call, which set @seen, although there
 * were requests at that time? Silent ones may have succeeded before.
 */
bool vrdma_requests_overdue(struct vrdma_wq *wq, u32 *seen)
{
	unsigned long flags;
	bool overdue;
	u32 i;

	if (!wq->requests)
		return false;
	spin_lock_irqsave(&wq->ring.lock, flags);
	for (i = wq->completed; i != wq->posted; i++) {
		if (!vrdma_request_at(wq, i)->silent)
			break;
	}
	overdue = wq->completed == *seen && i != wq->posted;
	*seen = wq->completed == wq->posted ? wq->completed - 1
					    : wq->completed;
	spin_unlock_irqrestore(&wq->ring.lock, flags);
	return overdue;
}

/*
 * With the ring's lock held, as with the following functions except
 * vrdma_request_is_of().
 */
bool vrdma_requests_full(const struct vrdma_wq *wq)
{
	if (vrdma_requests_shared(wq))
		return !wq->num_unused;
	return wq->posted - wq->completed > wq->ring.mask;
}

/*
 * The number of the next request. Call vrdma_request_confirm() when the request
 * is posted.
 */
__le64 vrdma_request_prepare(struct vrdma_wq *wq,
			     const struct vrdma_request *request)
{
	u32 n = vrdma_requests_shared(wq) ? wq->unused[wq->num_unused - 1]
					  : wq->posted;

	*vrdma_request_at(wq, n) = *request;
	return cpu_to_le64((u64)wq->generation << GENERATION_SHIFT | n);
}

void vrdma_request_confirm(struct vrdma_wq *wq)
{
	if (vrdma_requests_shared(wq))
		wq->requests[wq->unused[--wq->num_unused]].busy = true;
}

static bool vrdma_request_take_shared(struct vrdma_wq *wq, u32 n)
{
	if (n >= wq->num_requests || !wq->requests[n].busy)
		return false;
	wq->requests[n].busy = false;
	wq->unused[wq->num_unused++] = n;
	return true;
}

/* Requests that succeed without a completion precede one that has it. */
static bool vrdma_request_take_next(struct vrdma_wq *wq, u32 n)
{
	u32 i;

	if (n - wq->completed >= wq->posted - wq->completed)
		return false;
	for (i = wq->completed; i != n; i++) {
		if (!vrdma_request_at(wq, i)->silent)
			return false;
	}
	wq->completed = n + 1;
	return true;
}

/* Is a completion with this wr_id one of the queue's? */
bool vrdma_request_is_of(const struct vrdma_wq *wq, u64 id)
{
	return wq->requests && id >> GENERATION_SHIFT == wq->generation;
}

/*
 * The request with this number completes, and its entry may be used again.
 * NULL if there is no such request.
 */
const struct vrdma_request *vrdma_request_take(struct vrdma_wq *wq, u64 id)
{
	u32 n = id;

	if (vrdma_requests_shared(wq) ? !vrdma_request_take_shared(wq, n)
				      : !vrdma_request_take_next(wq, n))
		return NULL;
	return vrdma_request_at(wq, n);
}

/*
 * The oldest request without a completion, where none comes any more. The
 * device had executed @returned requests: of these, silent ones are successful.
 */
const struct vrdma_request *vrdma_request_oldest(struct vrdma_wq *wq,
						 u32 returned)
{
	struct vrdma_request *request;

	for (; wq->completed != wq->posted; wq->completed++) {
		request = vrdma_request_at(wq, wq->completed);
		if (!request->silent || (s32)(wq->completed - returned) >= 0)
			return request;
	}
	return NULL;
}
