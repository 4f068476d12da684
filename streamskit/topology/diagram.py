def draw(sub_topologies):
    return "<svg/>"
