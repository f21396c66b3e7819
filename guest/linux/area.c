// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of queues and of shadows of doorbells, in pages of the device. The
 * device may access them as long as the area exists, and a process may map
 * them.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "mem.h"

static void vrdma_area_unmap(struct vrdma_dev *dev, struct vrdma_area *area,
			     u32 count)
{
	while (count--)
		dma_unmap_page(dev->dma_dev, area->dma[count], PAGE_SIZE,
			       DMA_BIDIRECTIONAL);
}

static int vrdma_area_map(struct vrdma_dev *dev, struct vrdma_area *area)
{
	u32 i;

	for (i = 0; i < area->buf->npages; i++) {
		area->dma[i] = dma_map_page(dev->dma_dev, area->buf->pages[i],
					    0, PAGE_SIZE, DMA_BIDIRECTIONAL);
		if (dma_mapping_error(dev->dma_dev, area->dma[i])) {
			vrdma_area_unmap(dev, area, i);
			return -ENOMEM;
		}
	}
	return 0;
}

/* @npages pages of the device, all zero, or an error pointer */
struct vrdma_area *vrdma_area_alloc(struct vrdma_dev *dev, u32 npages)
{
	u32 num = DIV_ROUND_UP(npages, VRDMA_PAGES_PER_PAGE);
	struct vrdma_area *area;

	area = kvzalloc(struct_size(area, dma, num), GFP_KERNEL_ACCOUNT);
	if (!area)
		return ERR_PTR(-ENOMEM);
	area->npages = npages;
	area->buf = vrdma_buf_alloc(num);
	if (!area->buf)
		goto err;
	if (vrdma_area_map(dev, area))
		goto err_buf;
	return area;

err_buf:
	vrdma_buf_put(area->buf);
err:
	kvfree(area);
	return ERR_PTR(-ENOMEM);
}

/* The device does not access the pages any more, or never did. */
void vrdma_area_free(struct vrdma_dev *dev, struct vrdma_area *area)
{
	if (!area)
		return;
	if (vrdma_is_dead(dev))
		vrdma_wait_stopped(dev);
	vrdma_area_unmap(dev, area, area->buf->npages);
	vrdma_buf_put(area->buf);
	kvfree(area);
}

/* The table of its pages, which exists during one command only */
int vrdma_area_table(struct vrdma_dev *dev, const struct vrdma_area *area,
		     struct vrdma_table *table)
{
	return vrdma_table_init_list(dev, table, area->dma, area->npages);
}

/* The number of pages of the device for @slots. No slot crosses a page. */
u32 vrdma_slot_pages(u32 slots, u32 shift)
{
	return DIV_ROUND_UP((u64)slots << shift, VRDMA_PAGE_SIZE);
}
