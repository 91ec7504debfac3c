import { type LookupAddress, lookup } from "node:dns";
import type { RequestOptions } from "node:http";
import { AddressRefused } from "./host-address.ts";

type Lookup = NonNullable<RequestOptions["lookup"]>;

/**
 * Resolves a name for a connection, which then goes to an address that was checked. Every address of a name must be allowed, because the
 * name's owner chooses their order.
 */
export function checkedLookup(host: string, isAllowed: (address: string) => boolean): Lookup {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses: readonly LookupAddress[] = []) => {
      const other = addresses.find(({ address }) => !isAllowed(address));
      const problem = error ?? (other === undefined ? null : addressRefused(host));
      const [first] = addresses;
      if (problem !== null || first === undefined)
        return callback(problem ?? new Error(`${hostname} does not resolve to an address.`), "", 4);
      if (options.all === true) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    });
  };
}

/** The message omits the address: it reveals the host's network, and a model may read it. */
export function addressRefused(host: string): AddressRefused {
  return new AddressRefused(`${host} resolves to an address that is not allowed, such as one of a private network.`);
}
