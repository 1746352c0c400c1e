/** The price tag of an amount in cents, for example `$12.50`. */
export function priceTag(cents) {
  // TODO: amounts below zero
  const dollars = Math.floor(cents / 100)
  const rest = cents % 100
  return `$${dollars}.${rest}`
}
