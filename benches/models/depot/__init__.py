"""The back office of a wholesaler with four warehouses: products, stock, orders, shipments and invoices."""
