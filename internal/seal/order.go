package seal

// The values of an order (package sealorder): its request and its result.
const (
	OrderRequest Kind = "order request"
	OrderResult  Kind = "order result"
)

// OrderRequestOf returns the place of the request of an order.
func OrderRequestOf(key string) Place { return Place{Kind: OrderRequest, Name: key, Any: true} }

// OrderResultOf returns the place of the result of an order.
func OrderResultOf(key string) Place { return Place{Kind: OrderResult, Name: key, Any: true} }
