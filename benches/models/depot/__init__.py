"""The back office of a wholesaler: products, stock in four warehouses, orders, shipments and invoices in four currencies."""
