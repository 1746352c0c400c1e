import assert from 'node:assert/strict'
import test from 'node:test'
import { totalOf } from '../src/cart.js'
import { priceTag } from '../src/price.js'

test('shows dollars and cents', () => {
  assert.equal(priceTag(1250), '$12.50')
})

test('shows two digits for a few cents', () => {
  assert.equal(priceTag(1205), '$12.05')
})

test('adds up a cart', () => {
  assert.equal(totalOf([{ cents: 999 }, { cents: 51 }]), '$10.50')
})
