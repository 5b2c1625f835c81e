"""The layers that topologies wire, and the one loop over them."""
