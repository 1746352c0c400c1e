import { priceTag } from './price.js'

/** The price tag of everything in a cart. */
export function totalOf(cart) {
  // TODO: more than one of an item
  return priceTag(cart.reduce((sum, { cents }) => sum + cents, 0))
}
