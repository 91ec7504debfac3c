/** Random numbers that a seed determines: each is a whole number from 0 to one less than `below`. */
export function randomFrom(seed: number): (below: number) => number;
