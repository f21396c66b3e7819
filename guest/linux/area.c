// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of direct queues, and of shadows of doorbells. The device knows its
 * pages as long as these exist, and a process may map them.
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

/* So many pages of zeros, or an error pointer */
struct vrdma_area *vrdma_area_alloc(struct vrdma_dev *dev, u32 npages)
{
	struct vrdma_area *area;

	area = kvzalloc(struct_size(area, dma, npages), GFP_KERNEL_ACCOUNT);
	if (!area)
		return ERR_PTR(-ENOMEM);
	area->buf = vrdma_buf_alloc(npages);
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

/* The device does not know the pages any more, or never did. */
void vrdma_area_free(struct vrdma_dev *dev, struct vrdma_area *area)
{
	if (vrdma_is_dead(dev))
		vrdma_wait_stopped(dev);
	vrdma_area_unmap(dev, area, area->buf->npages);
	vrdma_buf_put(area->buf);
	kvfree(area);
}

/* The table of its pages, for the command that tells the device of them */
int vrdma_area_table(struct vrdma_dev *dev, const struct vrdma_area *area,
		     struct vrdma_table *table)
{
	return vrdma_table_init_list(dev, table, area->dma, area->buf->npages);
}
